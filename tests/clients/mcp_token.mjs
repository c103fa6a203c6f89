// Sends the token of `sandbox mcp --listen` with every request of the program that this module is imported into (`node --import`).
// The program itself has no option for a header.

import { subscribe } from 'node:diagnostics_channel'

const token = process.env.MCP_TOKEN
// Requests of `fetch` and of the package undici, before they are sent.
subscribe('undici:request:create', ({ request }) => request.addHeader('authorization', `Bearer ${token}`))
// Those of `node:http`, before their first byte is sent.
subscribe('http.client.request.created', ({ request }) => request.setHeader('authorization', `Bearer ${token}`))
