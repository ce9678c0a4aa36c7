import { isIP } from 'node:net'

const MAX_NAME_CHARACTERS = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i

/**
 * True for a valid host: an IP address (IPv6 without brackets and zone), or a DNS name of letters, digits, `-` and `_`
 * (RFC 1123 §2.1, RFC 2181 §11). All untrusted strings pass this check before `net.connect` and `dns.lookup`, which
 * throw on some others, such as a NUL; thrown from a callback, that would end the process.
 */
export function isHost(text: string): boolean {
  if (isIP(text) !== 0) return !text.includes('%')
  if (text.length === 0 || text.length > MAX_NAME_CHARACTERS) return false
  const labels = text.split('.')
  // a trailing dot makes a name absolute. A last label of digits is an IPv4 address in an unusual spelling, or invalid.
  if (labels.length > 1 && labels.at(-1) === '') labels.pop()
  return labels.every((label) => LABEL.test(label)) && !/^(?:\d+|0x[0-9a-f]*)$/i.test(labels.at(-1)!)
}

/** True for 1 to 65,535. */
export const isPort = (port: number): boolean => Number.isInteger(port) && port >= 1 && port <= 65_535
