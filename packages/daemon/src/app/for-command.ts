import { loadConfig } from '../config/config.ts'
import { type RunningDaemon, startDaemon } from './daemon.ts'

/**
 * The daemon inside a program that carries out one command, with the configuration of this user: it listens on nothing but
 * `socketPath`, and shares nothing, as it ends with the command. @throws StartError with a message for the person
 */
export async function startForCommand(socketPath: string): Promise<RunningDaemon> {
  const { mirror, swarm, hub, ...config } = await loadConfig()
  return startDaemon({
    config: {
      ...config,
      mirror: { ...mirror, hubAddr: undefined, ociAddr: undefined, s3Addr: undefined },
      swarm: { ...swarm, seed: false },
      hub: { ...hub, check: 'never' },
      metrics: { addr: undefined }
    },
    socketPath
  })
}
