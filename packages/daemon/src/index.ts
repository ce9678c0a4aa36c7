export type { ErrorCode } from '@svc/client/protocol'
export {
  type Advice,
  type AdvicePlain,
  LibraryError,
  type LibraryErrorCode,
  type LibraryErrorDetails,
  type Log
} from '@svc/library'
export type { StandingFolder } from '@svc/library/parts'
export { type DaemonOptions, type RunningDaemon, startDaemon } from './app/daemon.ts'
export { type CommandNeeds, startForCommand } from './app/for-command.ts'
export { type DaemonConfig, loadConfig, mergeConfig } from './config/config.ts'
export type { FileConfig } from './config/keys.ts'
export { ConfigError, DaemonError, type DaemonErrorDetails, StartError } from './errors.ts'
export { createLog, type LogLevel, type ProcessLog } from './log.ts'
