import { systemClock as clock } from '@svc/internal-clock'
import { activatedDescriptor } from '@svc/internal-server'
import { Output } from '@svc/internal-terminal'
import { loadConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import type { Flags } from '../flags.ts'
import { createLog, type ProcessLog } from '../log.ts'
import { type RunningDaemon, startDaemon } from './daemon.ts'

/** Limit of a quick stop, whatever hangs. The data on disk is safe at any moment. */
const QUICK_STOP_MS = 1_000

/** Runs the daemon until a signal ends it. @throws StartError */
export async function serve(flags: Flags): Promise<void> {
  const log = createLog(flags.logLevel, flags.logFormat ?? (Output.stderr().isTerminal ? 'text' : 'json'))
  const config = await loadConfig(flags)
  const descriptor =
    flags.socket === undefined ? activatedDescriptor(process.env, (message) => new StartError(message)) : undefined
  let started: Promise<RunningDaemon> | undefined
  let asked = 0
  const stop = (signal: string): void => {
    asked++
    log.info({ signal, asked }, asked === 1 ? 'asked to stop' : 'asked again: stopping quickly')
    if (asked > 1) clock.after(QUICK_STOP_MS, () => process.exit(1))
    // a signal during the start takes effect when it is complete, so that nothing is left half-done
    started
      ?.then((daemon) => daemon.close({ quick: asked > 1 }))
      .then(
        () => process.exit(process.exitCode ?? 0),
        (error: unknown) => {
          log.fatal({ err: error }, 'stopping failed')
          process.exit(1)
        }
      )
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop(signal))
  watchDefects(log, () => stop('defect'))
  started = startDaemon({
    config,
    log,
    ...(flags.socket !== undefined && { socketPath: flags.socket }),
    ...(descriptor !== undefined && { socketDescriptor: descriptor })
  })
  await started
}

/**
 * An unhandled rejection concerns one request or one job: it is logged, and everything else continues. After an
 * uncaught exception no invariant can be relied on: it is logged, and the daemon stops in an orderly way, so that its
 * service manager restarts it.
 */
function watchDefects(log: ProcessLog, stop: () => void): void {
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'a defect: unhandled rejection'))
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'a defect: uncaught exception')
    process.exitCode = 1
    stop()
  })
}
