import type { SwarmClient, SwarmClientDeps, SwarmClientOptions } from '@svc/sharing/parts'
import { howToFetch } from '../advice.ts'
import { configuredAddress } from '../config/address.ts'
import type { DaemonConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { webseedKeysOf } from '../webseed-keys.ts'

export interface ConfiguredSwarmDeps extends Omit<SwarmClientDeps, 'settings' | 'addresses' | 'keys' | 'howToFetch'> {
  readonly config: Pick<DaemonConfig, 'swarm' | 'webseedKeys'>
}

/** The swarm client as the configuration says. @throws StartError, ConfigError when an address or a key is unavailable */
export async function openSwarm(
  { config, ...parts }: ConfiguredSwarmDeps,
  options?: SwarmClientOptions
): Promise<SwarmClient> {
  const { swarm: settings } = config
  const { peerAddr, webseedAddr, listens } = settings
  const peer = configuredAddress(peerAddr, '[swarm] peer_addr')
  const webseed =
    webseedAddr === '' || listens === false ? undefined : configuredAddress(webseedAddr, '[swarm] webseed_addr')
  const keys = await webseedKeysOf(config, process.env)
  const sharing = await import('@svc/sharing/parts')
  try {
    const client = await sharing.SwarmClient.open(
      { ...parts, settings, addresses: { peer, webseed, ...(listens === false && { listens }) }, keys, howToFetch },
      options
    )
    parts.log.info(
      { seed: settings.seed, decidedBy: 'seed under [swarm] in the configuration' },
      listens === false ? 'the swarm client is open' : 'the swarm client listens'
    )
    return client
  } catch (cause) {
    const why = `${(cause as Error).message}; see peer_addr and webseed_addr under [swarm]`
    throw new StartError(`the swarm client cannot start: ${why}`, { cause })
  }
}
