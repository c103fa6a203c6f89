// The screen of a terminal: what a command wrote becomes rows of cells with colours. Nothing that is written has any other effect: titles,
// links, the clipboard, questions to the terminal and modes of the keyboard are left out, so there is nothing to be answered.

const MAX_SCROLLBACK = 5000;
const MAX_PARAMETERS = 32;
const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, inverse: false, hidden: false, strike: false });

/** Line drawing of the VT100, which borders of programs are made of. */
const DRAWING = new Map([..."`afgjklmnopqrstuvwxyz{|}~"].map((from, index) => [from, [..."◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"][index]]));

const COMBINING = /^[\p{Mn}\p{Me}\u200d\ufe00-\ufe0f]$/u;
const WIDE = /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]$/u;
/** Has no shape, or would turn the order of its neighbours around. */
const SHAPELESS = /^[\u0080-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\u{e0000}-\u{e0fff}]$/u;

export class Screen {
  /** `newLines`: a line feed begins a line, as for a command without a terminal. */
  constructor(columns, rows, { newLines = false } = {}) {
    this.columns = Math.max(1, columns);
    this.rows = Math.max(1, rows);
    this.newLines = newLines;
    this.reset();
  }

  reset() {
    this.scrollback = [];
    this.dropped = 0;
    this.lines = this.emptyLines();
    this.saved = null;
    this.other = null;
    this.x = 0;
    this.y = 0;
    this.style = PLAIN;
    this.top = 0;
    this.bottom = this.rows - 1;
    this.isCursorShown = true;
    this.isWrapPending = false;
    this.wraps = true;
    this.isOrigin = false;
    this.isDrawing = false;
    this.parse = { state: "text", text: "" };
    this.lastCharacter = " ";
    this.changed = new Set();
    this.isAllChanged = true;
  }

  emptyLines() {
    return Array.from({ length: this.rows }, () => []);
  }

  resize(columns, rows) {
    this.columns = Math.max(1, Math.min(columns, 1000));
    const wanted = Math.max(1, Math.min(rows, 500));
    while (this.lines.length > wanted) {
      if (this.y < this.lines.length - 1 && this.lines.at(-1).length === 0) this.lines.pop();
      else {
        this.keep(this.lines.shift());
        this.y = Math.max(0, this.y - 1);
      }
    }
    while (this.lines.length < wanted) this.lines.push([]);
    this.rows = wanted;
    this.top = 0;
    this.bottom = wanted - 1;
    this.x = Math.min(this.x, this.columns - 1);
    this.y = Math.min(this.y, wanted - 1);
    this.isAllChanged = true;
  }

  write(text) {
    for (const character of text) this.take(character);
  }

  take(character) {
    const point = character.codePointAt(0);
    const { parse } = this;
    // These end whatever was begun.
    if (point === 0x18 || point === 0x1a) {
      parse.state = "text";
      return;
    }
    switch (parse.state) {
      case "text":
        if (point === 0x1b) parse.state = "escape";
        else if (point === 0x9b) this.beginControl();
        else if (point === 0x90 || point === 0x98 || point === 0x9d || point === 0x9e || point === 0x9f) parse.state = "string";
        else if (point < 0x20 || point === 0x7f) this.control(point);
        else this.put(character);
        break;
      case "escape":
        this.escape(character, point);
        break;
      case "charset":
        this.isDrawing = character === "0";
        parse.state = "text";
        break;
      case "skip":
        parse.state = "text";
        break;
      case "control":
        if (point === 0x1b) parse.state = "escape";
        else if (point < 0x20) this.control(point);
        else if (point >= 0x40 && point <= 0x7e) {
          parse.state = "text";
          this.dispatch(character, parse.text);
        } else if (parse.text.length < 256) parse.text += character;
        break;
      case "string":
        // Ended by BEL or ST. What is in it is for nobody.
        if (point === 0x07 || point === 0x9c) parse.state = "text";
        else if (point === 0x1b) parse.state = "string-escape";
        break;
      case "string-escape":
        parse.state = character === "\\" ? "text" : "string";
        break;
    }
  }

  beginControl() {
    this.parse.state = "control";
    this.parse.text = "";
  }

  escape(character, point) {
    this.parse.state = "text";
    if (point < 0x20) {
      this.parse.state = "escape";
      if (point !== 0x1b) this.control(point);
      return;
    }
    switch (character) {
      case "[": this.beginControl(); break;
      case "]": case "P": case "X": case "^": case "_": this.parse.state = "string"; break;
      case "(": this.parse.state = "charset"; break;
      case ")": case "*": case "+": case "#": case "%": case " ": this.parse.state = "skip"; break;
      case "7": this.save(); break;
      case "8": this.restore(); break;
      case "D": this.lineFeed(); break;
      case "E": this.x = 0; this.lineFeed(); break;
      case "M": this.reverseLineFeed(); break;
      case "c": {
        const { scrollback, dropped } = this;
        this.reset();
        Object.assign(this, { scrollback, dropped });
        break;
      }
    }
  }

  control(point) {
    switch (point) {
      case 0x08: this.x = Math.max(0, this.x - 1); this.isWrapPending = false; break;
      case 0x09: this.x = Math.min(this.columns - 1, (Math.floor(this.x / 8) + 1) * 8); this.isWrapPending = false; break;
      case 0x0a: case 0x0b: case 0x0c:
        if (this.newLines) this.x = 0;
        this.lineFeed();
        break;
      case 0x0d: this.x = 0; this.isWrapPending = false; break;
      case 0x0f: this.isDrawing = false; break;
    }
  }

  put(given) {
    if (SHAPELESS.test(given)) return;
    const line = this.lines[this.y];
    if (COMBINING.test(given)) {
      const before = line[this.x - 1];
      // A letter with thousands of accents would reach over the whole page.
      if (before && before.text.length < 8) line[this.x - 1] = { ...before, text: before.text + given };
      this.touch(this.y);
      return;
    }
    const character = this.isDrawing ? (DRAWING.get(given) ?? given) : given;
    const width = WIDE.test(character) ? 2 : 1;
    if (this.isWrapPending || this.x + width > this.columns) {
      if (this.wraps && (this.isWrapPending || width === 2)) {
        this.x = 0;
        this.lineFeed();
      }
      this.isWrapPending = false;
      this.x = Math.min(this.x, this.columns - 1);
    }
    const row = this.lines[this.y];
    while (row.length < this.x) row.push({ text: " ", style: PLAIN });
    row[this.x] = { text: character, style: this.style, isWide: width === 2 };
    if (width === 2 && this.x + 1 < this.columns) row[this.x + 1] = { text: "", style: this.style };
    this.lastCharacter = character;
    this.touch(this.y);
    if (this.x + width >= this.columns) {
      this.x = this.columns - 1;
      this.isWrapPending = true;
    } else {
      this.x += width;
    }
  }

  touch(row) {
    this.changed.add(row);
  }

  keep(line) {
    // The screen of an editor is not part of what happened before.
    if (this.other) return;
    this.scrollback.push(line);
    if (this.scrollback.length > MAX_SCROLLBACK) {
      this.scrollback.shift();
      this.dropped += 1;
    }
  }

  lineFeed() {
    this.isWrapPending = false;
    if (this.y === this.bottom) this.scrollUp(1);
    else this.y = Math.min(this.rows - 1, this.y + 1);
  }

  reverseLineFeed() {
    this.isWrapPending = false;
    if (this.y === this.top) this.scrollDown(1);
    else this.y = Math.max(0, this.y - 1);
  }

  scrollUp(count) {
    for (let at = 0; at < Math.min(count, this.rows); at += 1) {
      const [line] = this.lines.splice(this.top, 1);
      if (this.top === 0) this.keep(line);
      this.lines.splice(this.bottom, 0, []);
    }
    this.isAllChanged = true;
  }

  scrollDown(count) {
    for (let at = 0; at < Math.min(count, this.rows); at += 1) {
      this.lines.splice(this.bottom, 1);
      this.lines.splice(this.top, 0, []);
    }
    this.isAllChanged = true;
  }

  save() {
    this.saved = { x: this.x, y: this.y, style: this.style, isDrawing: this.isDrawing };
  }

  restore() {
    Object.assign(this, this.saved ?? { x: 0, y: 0, style: PLAIN, isDrawing: false });
    this.moveTo(this.x, this.y);
  }

  moveTo(x, y) {
    this.x = Math.max(0, Math.min(this.columns - 1, x));
    this.y = Math.max(0, Math.min(this.rows - 1, y));
    this.isWrapPending = false;
    this.touch(this.y);
  }

  dispatch(final, text) {
    const isPrivate = text.startsWith("?");
    if (/[<=>]/.test(text[0] ?? "") || /[ !"#$%&'()*+,\-./]/.test(text)) return;
    const numbers = text.replace("?", "").split(/[;:]/).slice(0, MAX_PARAMETERS).map((part) => Math.min(Number.parseInt(part, 10) || 0, 9999));
    const first = Math.max(1, numbers[0] ?? 1);
    if (isPrivate && final !== "h" && final !== "l" && final !== "J" && final !== "K") return;
    const row = this.lines[this.y];
    switch (final) {
      case "A": this.moveTo(this.x, Math.max(this.y >= this.top ? this.top : 0, this.y - first)); break;
      case "B": case "e": this.moveTo(this.x, Math.min(this.y <= this.bottom ? this.bottom : this.rows - 1, this.y + first)); break;
      case "C": case "a": this.moveTo(this.x + first, this.y); break;
      case "D": this.moveTo(this.x - first, this.y); break;
      case "E": this.moveTo(0, this.y + first); break;
      case "F": this.moveTo(0, this.y - first); break;
      case "G": case "`": this.moveTo(first - 1, this.y); break;
      case "d": this.moveTo(this.x, (this.isOrigin ? this.top : 0) + first - 1); break;
      case "H": case "f": this.moveTo(Math.max(1, numbers[1] ?? 1) - 1, (this.isOrigin ? this.top : 0) + first - 1); break;
      case "J": this.eraseDisplay(numbers[0] ?? 0); break;
      case "K": this.eraseLine(numbers[0] ?? 0); break;
      case "L": case "M": this.moveLines(final === "L", first); break;
      case "P": row.splice(this.x, Math.min(first, row.length)); this.touch(this.y); break;
      case "@":
        while (row.length < this.x) row.push({ text: " ", style: PLAIN });
        row.splice(this.x, 0, ...Array.from({ length: Math.min(first, this.columns) }, () => this.blank()));
        row.length = Math.min(row.length, this.columns);
        this.touch(this.y);
        break;
      case "X":
        for (let at = this.x; at < Math.min(this.columns, this.x + first); at += 1) if (at < row.length || this.style.bg !== null) this.setBlank(row, at);
        this.touch(this.y);
        break;
      case "b": for (let at = 0; at < Math.min(first, this.columns); at += 1) this.put(this.lastCharacter); break;
      case "S": this.scrollUp(first); break;
      case "T": this.scrollDown(first); break;
      case "r": {
        const bottom = numbers[1] ? numbers[1] - 1 : this.rows - 1;
        if (first - 1 < bottom && bottom < this.rows) {
          this.top = first - 1;
          this.bottom = bottom;
          this.moveTo(0, this.isOrigin ? this.top : 0);
        }
        break;
      }
      case "s": this.save(); break;
      case "u": this.restore(); break;
      case "m": this.style = restyled(this.style, numbers); break;
      case "h": case "l": if (isPrivate) numbers.forEach((mode) => this.mode(mode, final === "h")); break;
    }
  }

  blank() {
    return { text: " ", style: this.style.bg === null ? PLAIN : { ...PLAIN, bg: this.style.bg } };
  }

  setBlank(row, at) {
    while (row.length < at) row.push({ text: " ", style: PLAIN });
    row[at] = this.blank();
  }

  eraseLine(how) {
    const row = this.lines[this.y];
    const from = how === 0 ? this.x : 0;
    const to = how === 1 ? this.x + 1 : this.columns;
    if (to === this.columns && this.style.bg === null) row.length = Math.min(row.length, from);
    else for (let at = from; at < to; at += 1) this.setBlank(row, at);
    this.touch(this.y);
  }

  eraseDisplay(how) {
    if (how === 3) {
      this.dropped += this.scrollback.length;
      this.scrollback = [];
    } else {
      const from = how === 0 ? this.y + 1 : 0;
      const to = how === 1 ? this.y : this.rows;
      if (how !== 2) this.eraseLine(how);
      for (let at = from; at < to; at += 1) this.lines[at] = this.style.bg === null ? [] : Array.from({ length: this.columns }, () => this.blank());
    }
    this.isAllChanged = true;
  }

  moveLines(isInsert, count) {
    if (this.y < this.top || this.y > this.bottom) return;
    for (let at = 0; at < Math.min(count, this.rows); at += 1) {
      this.lines.splice(isInsert ? this.bottom : this.y, 1);
      this.lines.splice(isInsert ? this.y : this.bottom, 0, []);
    }
    this.isAllChanged = true;
  }

  mode(mode, isSet) {
    switch (mode) {
      case 6: this.isOrigin = isSet; this.moveTo(0, isSet ? this.top : 0); break;
      case 7: this.wraps = isSet; break;
      case 25: this.isCursorShown = isSet; this.touch(this.y); break;
      case 47: case 1047: case 1049:
        if (isSet && !this.other) {
          if (mode === 1049) this.save();
          this.other = this.lines;
          this.lines = this.emptyLines();
        } else if (!isSet && this.other) {
          this.lines = this.other;
          this.other = null;
          while (this.lines.length < this.rows) this.lines.push([]);
          this.lines.length = this.rows;
          if (mode === 1049) this.restore();
        }
        this.top = 0;
        this.bottom = this.rows - 1;
        this.isAllChanged = true;
        break;
    }
  }
}

function restyled(style, numbers) {
  let next = { ...style };
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at];
    if (number === 0) next = { ...PLAIN };
    else if (number === 1) next.bold = true;
    else if (number === 2) next.dim = true;
    else if (number === 3) next.italic = true;
    else if (number === 4) next.underline = true;
    else if (number === 7) next.inverse = true;
    else if (number === 8) next.hidden = true;
    else if (number === 9) next.strike = true;
    else if (number === 22) next.bold = next.dim = false;
    else if (number === 23) next.italic = false;
    else if (number === 24) next.underline = false;
    else if (number === 27) next.inverse = false;
    else if (number === 28) next.hidden = false;
    else if (number === 29) next.strike = false;
    else if (number >= 30 && number <= 37) next.fg = number - 30;
    else if (number >= 90 && number <= 97) next.fg = number - 82;
    else if (number >= 40 && number <= 47) next.bg = number - 40;
    else if (number >= 100 && number <= 107) next.bg = number - 92;
    else if (number === 39) next.fg = null;
    else if (number === 49) next.bg = null;
    else if (number === 38 || number === 48) {
      const side = number === 38 ? "fg" : "bg";
      if (numbers[at + 1] === 5) {
        next[side] = colourOf(numbers[at + 2] ?? 0);
        at += 2;
      } else if (numbers[at + 1] === 2) {
        next[side] = `#${numbers.slice(at + 2, at + 5).map((part) => Math.min(255, part).toString(16).padStart(2, "0")).join("").padEnd(6, "0")}`;
        at += 4;
      }
    }
  }
  return Object.freeze(next);
}

/** One of 256: the first 16 are names, then a cube, then greys. */
function colourOf(number) {
  if (number < 16) return number;
  const hex = (value) => Math.min(255, value).toString(16).padStart(2, "0");
  if (number >= 232) return `#${hex(8 + (Math.min(number, 255) - 232) * 10).repeat(3)}`;
  const part = (value) => hex(value === 0 ? 0 : 55 + value * 40);
  const index = number - 16;
  return `#${part(Math.floor(index / 36))}${part(Math.floor(index / 6) % 6)}${part(index % 6)}`;
}
