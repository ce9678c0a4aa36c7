import { escaped } from './printable.ts'

/** Fields with a fixed place in the line. */
const PLACED = new Set(['level', 'time', 'msg', 'err'])

/**
 * A record of a log, for people: local time, level, message, fields as `key=value`; an error's stack on lines of its own.
 * Control characters, which untrusted names can contain, are escaped: no line controls the terminal or looks like two.
 */
export function logLine(record: Readonly<Record<string, unknown>>): string {
  const { level, time, msg, err } = record
  const fields = Object.entries(record)
    .filter(([key, value]) => !PLACED.has(key) && value !== undefined)
    .map(([key, value]) => `${escaped(key)}=${text(value)}`)
  const label = String(level) === 'info' ? '' : `${String(level)}:`
  const head = [clock(String(time)), label, escaped(String(msg ?? '')), ...fields].filter((part) => part !== '')
  return `${head.join(' ')}\n${stack(err)}`
}

/** `14:03:59`, local: the reader is at this machine. */
function clock(iso: string): string {
  const at = new Date(iso)
  const pad = (n: number): string => String(n).padStart(2, '0')
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`
}

/** Words as they are, also several of them; everything else as JSON. */
function text(value: unknown): string {
  if (isWord(value)) return escaped(value)
  if (Array.isArray(value) && value.length > 0 && value.every(isWord)) return escaped(value.join(','))
  return escaped(JSON.stringify(value))
}

const isWord = (value: unknown): value is string => typeof value === 'string' && value !== '' && !/[\s"=,]/.test(value)

function stack(err: unknown): string {
  if (typeof err !== 'object' || err === null) return ''
  const { stack: trace, message, type } = err as Record<string, unknown>
  const lines = typeof trace === 'string' ? trace.split('\n') : [`${String(type)}: ${String(message)}`]
  return lines.map((line) => `    ${escaped(line.trim())}\n`).join('')
}
