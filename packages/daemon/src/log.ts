import { type DestinationStream, type Logger, pino } from 'pino'

export type Log = Logger

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/**
 * Structured lines on standard error: JSON, one object a line, whether or not it is a terminal (a service manager adds nothing
 * that people would miss, and nobody has to guess the format). Credentials are never logged, whatever object holds them.
 */
export function createLog(level: LogLevel = 'info', destination?: DestinationStream): Log {
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
    destination ?? pino.destination({ dest: 2, sync: true })
  )
}
