import { isIP } from 'node:net'

const MAX_NAME_CHARACTERS = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i

/**
 * True for what can stand in front of a port: an IP address (IPv6 without brackets and without a zone), or a DNS name of
 * letters, digits, `-` and `_` (RFC 1123 §2.1, RFC 2181 §11). Strings of strangers reach `net.connect` and `dns.lookup`
 * through here only: those throw on some others, a NUL among them, and a throw in a callback ends the process.
 */
export function isHost(text: string): boolean {
  if (isIP(text) !== 0) return !text.includes('%')
  if (text.length === 0 || text.length > MAX_NAME_CHARACTERS) return false
  const labels = text.split('.')
  // A trailing dot makes a name absolute. A last label of digits is an IPv4 address in an odd spelling, or nothing.
  if (labels.length > 1 && labels.at(-1) === '') labels.pop()
  return labels.every((label) => LABEL.test(label)) && !/^(?:\d+|0x[0-9a-f]*)$/i.test(labels.at(-1)!)
}

/** True for 1 to 65,535. */
export const isPort = (port: number): boolean => Number.isInteger(port) && port >= 1 && port <= 65_535
