import { defaultSocketPath } from '@svc/client/protocol'
import { TrustRules } from '@svc/library/parts'
import { configuredAddress } from '../config/address.ts'
import { configPath, type DaemonConfig, type Environment, programConfig } from '../config/config.ts'
import { readConfigFile } from '../config/file.ts'
import { CONFIG_KEYS, type FileConfig } from '../config/keys.ts'
import { s3KeysOf } from '../config/s3-keys.ts'
import { VIEWS_KEYS } from '../config/standing.ts'
import { TRUST_KEYS } from '../config/trust.ts'
import { WEBSEED_KEYS } from '../config/webseed.ts'
import type { Flags } from '../flags.ts'
import { lookAtStore } from '../store-opening.ts'
import { webseedKeysOf } from '../webseed-keys.ts'

/**
 * The output of `svcd --check`: where the configuration was read from, the paths of store and socket and what set them,
 * each key of the file, and which environment variables override it. Of the hub token it only says whether it is set.
 * @throws ConfigError, StartError for everything that would prevent a start, but a daemon that runs already
 */
export async function checkConfig(flags: Flags, env: Environment): Promise<string[]> {
  const { file, required } = configPath(flags, env)
  const written = await readConfigFile(file, required)
  const config = programConfig(written, flags, env)
  checkAddresses(config)
  await s3KeysOf(config.mirror)?.()
  await webseedKeysOf(config, env)
  await TrustRules.open(config.trust)
  const { problem } = await lookAtStore(config.store)
  const keys = keysOf(written)
  const origin =
    keys.length > 0 ? `${file} (${keys.length} ${keys.length === 1 ? 'key' : 'keys'})` : `${file} (${none(written)})`
  return [
    `configuration  ${origin}`,
    `store          ${config.store.root} (${rootOrigin(flags, env, written)})`,
    `socket         ${flags.socket ?? defaultSocketPath(env, process.geteuid?.() ?? 0)} (${socketOrigin(flags, env)})`,
    `hub            ${config.hub.endpoint ?? 'the public hub'}${env.HF_ENDPOINT ? ' (HF_ENDPOINT)' : ''}, ${
      config.hub.token === undefined ? 'no token in the environment' : `with the token of ${config.hub.tokenName}`
    }`,
    `swarm          ${swarmLine(config)}`,
    ...config.webseedKeys.map(
      ({ base, credentialsFile }) =>
        `webseed        ${base.href}, signed with the key ${credentialsFile === undefined ? 'of the environment' : `in ${credentialsFile}`}`
    ),
    ...keys.map((key) => `  ${key}`),
    ...(problem === undefined ? [] : [`remembered     nothing: ${problem}`]),
    'the configuration is fine'
  ]
}

const none = (written: FileConfig): string =>
  Object.keys(written).length > 0 ? 'nothing is set: defaults' : 'absent or empty: defaults'

/** Validates settings that are otherwise parsed only when a listener starts. */
function checkAddresses({ swarm, mirror, metrics }: DaemonConfig): void {
  const addresses = {
    '[mirror] hub_addr': mirror.hubAddr,
    '[mirror] oci_addr': mirror.ociAddr,
    '[mirror] s3_addr': mirror.s3Addr,
    '[metrics] addr': metrics.addr,
    ...(swarm.enabled && { '[swarm] peer_addr': swarm.peerAddr }),
    ...(swarm.enabled && swarm.webseedAddr !== '' && { '[swarm] webseed_addr': swarm.webseedAddr })
  }
  for (const [key, address] of Object.entries(addresses)) if (address !== undefined) configuredAddress(address, key)
}

function rootOrigin(flags: Flags, env: Environment, written: FileConfig): string {
  if (flags.root !== undefined) return '--root'
  if (env.SVC_ROOT) return 'SVC_ROOT'
  return written.store?.root ? '[store] root' : 'default'
}

function socketOrigin(flags: Flags, env: Environment): string {
  if (flags.socket !== undefined) return '--socket'
  return env.SVC_SOCKET ? 'SVC_SOCKET' : 'default'
}

const swarmLine = ({ swarm }: DaemonConfig): string =>
  swarm.enabled
    ? [
        swarm.seed ? 'fetches and seeds' : 'only fetches',
        swarm.dht ? 'DHT on' : 'DHT off',
        `peers at ${swarm.peerAddr}`,
        swarm.webseedAddr === '' ? 'no webseed listener' : `webseed at ${swarm.webseedAddr}`
      ].join(', ')
    : 'off'

/** `[section] key = value` for every key in the file, in the order of the reference. */
function keysOf(written: FileConfig): string[] {
  const { webseed = {}, trust = [], views = [], ...sections } = written
  return [
    ...Object.entries(CONFIG_KEYS).map(([section, keys]) => {
      const values: Readonly<Record<string, unknown>> = sections[section as keyof typeof sections] ?? {}
      return [`[${section}]`, keys, values] as const
    }),
    ...trust.map((values, at) => [`[[trust]] ${at + 1}`, TRUST_KEYS, values] as const),
    ...views.map((values, at) => [`[[views]] ${at + 1}`, VIEWS_KEYS, values] as const),
    ...Object.entries(webseed).map(([url, values]) => [`[webseed."${url}"]`, WEBSEED_KEYS, values] as const)
  ].flatMap(([section, keys, values]) =>
    Object.keys(keys)
      .filter((key) => Object.hasOwn(values, key))
      .map((key) => `${section} ${key} = ${JSON.stringify((values as Record<string, unknown>)[key])}`)
  )
}
