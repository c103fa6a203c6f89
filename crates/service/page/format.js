// Numbers and times for people.

export function bytes(count) {
  if (count === undefined || count === null) return "–";
  if (count < 1024) return `${count} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = -1;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function duration(milliseconds) {
  if (milliseconds === undefined || milliseconds === null) return "–";
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** Minutes and seconds, for what counts down. */
export function clock(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

export function ago(time) {
  const seconds = (Date.now() - new Date(time).getTime()) / 1000;
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

export function timeOfDay(time) {
  const date = new Date(time);
  const today = new Date().toDateString() === date.toDateString();
  const clockTime = date.toLocaleTimeString([], { hour12: false });
  return today ? clockTime : `${date.toLocaleDateString()} ${clockTime}`;
}

export function counted(count, word, plural = `${word}s`) {
  return `${count} ${count === 1 ? word : plural}`;
}

export function shortId(id) {
  return String(id).slice(-8);
}

/** A path, with the directory that it is in apart. */
export function splitPath(path) {
  const at = path.replace(/\/+$/, "").lastIndexOf("/");
  return at < 0 ? ["", path] : [path.slice(0, at + 1), path.slice(at + 1)];
}
