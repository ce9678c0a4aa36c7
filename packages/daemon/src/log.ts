import { type DestinationStream, type Logger, pino } from 'pino'
import { formatLogLine } from './log-text.ts'

/** A pino logger: `log.info({ fields }, 'message')`. */
export type Log = Logger

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
/** Lines of this level and above are written; `silent` writes none. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** `json` is one object per line, for programs; `text` is for people. */
export const LOG_FORMATS = ['text', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/**
 * Structured lines on standard error, written synchronously: nothing is lost when the process dies. Credentials are
 * never logged, whatever object contains them.
 */
export function createLog(
  level: LogLevel = 'info',
  format: LogFormat = 'json',
  destination: DestinationStream = pino.destination({ dest: 2, sync: true })
): Log {
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
    format === 'json' ? destination : { write: (line: string) => destination.write(formatLogLine(line)) }
  )
}
