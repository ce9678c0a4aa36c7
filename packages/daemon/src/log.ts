import { escaped, logLine } from '@svc/internal-terminal'
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
        destination.write(format === 'json' ? `${escaped(line.trimEnd())}\n` : logLine(JSON.parse(line)))
    }
  )
}
