import { escaped } from '@svc/internal-terminal'
import type { Log } from '@svc/library/parts'
import { type DestinationStream, pino } from 'pino'

/** The log of a process. */
export interface ProcessLog extends Log {
  /** The process ends now. */
  fatal(fields: object, message: string): void
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
/** Lines of this level and above are written; `silent` writes none. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** `json` is one object per line, for programs; `text` is for people. */
export const LOG_FORMATS = ['text', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/**
 * Lines on standard error, written synchronously: nothing is lost when the process dies. Credentials are never logged,
 * and no control character is.
 */
export function createLog(
  level: LogLevel = 'info',
  format: LogFormat = 'json',
  destination: DestinationStream = pino.destination({ dest: 2, sync: true })
): ProcessLog {
  return pino(
    {
      base: null,
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['token', '*.token', 'headers.authorization', '*.headers.authorization', 'err.config'],
        censor: '[redacted]'
      }
    },
    {
      write: (line: string) =>
        destination.write(format === 'json' ? `${escaped(line.trimEnd())}\n` : formatLogLine(line))
    }
  )
}

/** Fields with a fixed place in the line. */
const PLACED = new Set(['level', 'time', 'msg', 'err'])

/**
 * Formats a line for people: local time, level, message, fields as `key=value`; an error's stack on lines of its own.
 * Control characters, which untrusted names can contain, are escaped: no line controls the terminal or looks like two.
 */
function formatLogLine(json: string): string {
  const record = JSON.parse(json) as Record<string, unknown>
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
