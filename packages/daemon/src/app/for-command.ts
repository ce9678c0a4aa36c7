import { loadConfig } from '../config/config.ts'
import { type RunningDaemon, startDaemon } from './daemon.ts'

/** What a command needs of other machines. */
export interface CommandNeeds {
  /** Peers that nobody names: with the DHT, where it is configured. Default false. */
  readonly findsPeers?: boolean
}

/**
 * The daemon inside a program that carries out one command, with the configuration of this user: it listens on nothing but
 * `socketPath`, the port for the DHT's answers excepted, and shares nothing, as it ends with the command.
 * @throws StartError with a message for the person
 */
export async function startForCommand(
  socketPath: string,
  { findsPeers = false }: CommandNeeds = {}
): Promise<RunningDaemon> {
  const { mirror, swarm, hub, ...config } = await loadConfig()
  return startDaemon({
    config: {
      ...config,
      mirror: { ...mirror, hubAddr: undefined, ociAddr: undefined, s3Addr: undefined },
      swarm: { ...swarm, seed: false, listens: false, lsd: false, dht: swarm.dht && findsPeers },
      hub: { ...hub, check: 'never' },
      metrics: { addr: undefined }
    },
    socketPath
  })
}
