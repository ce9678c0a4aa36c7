import { isAbsolute, join, resolve } from 'node:path'
import { hubTokenFile } from '@svc/client/protocol'
import { isLoopback } from '@svc/internal-net'
import type { StandingFolder } from '@svc/library/parts'
import { ConfigError } from '../errors.ts'
import { configuredAddress } from './address.ts'
import { readConfigFile } from './file.ts'
import { type FileConfig, type Settings, settingsOf } from './keys.ts'
import { absolutePath, homeFolder } from './path.ts'
import { standingViews } from './standing.ts'
import { type TrustRuleConfig, trustRules } from './trust.ts'
import { unlessEmpty } from './values.ts'
import { type WebseedKeyConfig, webseedKeyConfigs } from './webseed.ts'

/** `[store]` */
interface StoreConfig extends Omit<Settings['store'], 'root'> {
  readonly root: string
  /** Where it is remembered which store each root had; undefined: nowhere. */
  readonly memory?: string | undefined
  /** `--new`: whatever the root had before, what is there now is right, and a store is made where there is none. */
  readonly isNew?: boolean
}

/** `[hub]`, with the environment's settings for the hub. */
export interface HubConfig extends Omit<Settings['hub'], 'usesClientToken'> {
  /** `SVC_HF_TOKEN`, else `HF_TOKEN`. */
  readonly token: string | undefined
  /** The name of that variable, or the file of the hub client, for messages. */
  readonly tokenName?: string | undefined
  /** Where the hub client keeps the token of `hf auth login`; read at each import that has no other. */
  readonly tokenFile?: string | undefined
}

/** `[swarm]` */
export interface SwarmConfig extends Omit<Settings['swarm'], 'seed' | 'uploadLimitBytesPerSecond'> {
  /** `PUT /v1/seed` and `PUT /v1/upload-limit` change this key and the next while the daemon runs. */
  seed: boolean
  uploadLimitBytesPerSecond: number
  /** False: peers are connected to, and nobody can connect. Default true. */
  readonly listens?: boolean
}

/** `[catalog]` */
export interface CatalogConfig extends Omit<Settings['catalog'], 'uploadLimitBytesPerSecond'> {
  readonly uploadLimitBytesPerSecond: number
}

/** `[mirror] on_demand` and its further keys. */
type OnDemandConfig = Pick<Settings['mirror'], 'allows' | 'bytesPerDay' | 'timeoutMs' | 'revisions'>

/** `[mirror]`, with the environment's settings for it. */
export interface MirrorConfig extends Pick<Settings['mirror'], 'hubAddr' | 'ociAddr' | 's3Addr' | 's3Keys' | 'names'> {
  /** Undefined: nothing is fetched on demand. */
  readonly onDemand: OnDemandConfig | undefined
  /** `SVC_MIRROR_TOKEN`: required by the mirrors of hub and registries. */
  readonly token: string | undefined
}

/** The effective configuration: file, environment and flags merged, with defaults (spec conf.1, disk.3, disk.13). */
export interface DaemonConfig {
  /** The configuration file, which may be absent; undefined if there is none. */
  readonly file?: string
  readonly store: StoreConfig
  readonly hub: HubConfig
  readonly swarm: SwarmConfig
  readonly catalog: CatalogConfig
  readonly mirror: MirrorConfig
  readonly network: Settings['network']
  readonly metrics: Settings['metrics']
  /** `[webseed."https://…"]`: webseeds whose requests are signed. */
  readonly webseedKeys: readonly WebseedKeyConfig[]
  /** `[[trust]]`, in their order. */
  readonly trust: readonly TrustRuleConfig[]
  /** `[[views]]`, in their order. */
  readonly views: readonly StandingFolder[]
}

export interface ConfigFlags {
  readonly root?: string | undefined
  readonly config?: string | undefined
  readonly noSeedVerify?: boolean | undefined
  /** `--new` */
  readonly new?: boolean | undefined
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Our variable, else what the hub's own client uses (spec hub.4). */
function hubToken(env: Environment, usesClients: boolean): Pick<HubConfig, 'token' | 'tokenName' | 'tokenFile'> {
  const isClients = usesClients && !/^(?:1|on|yes|true)$/i.test(env.HF_HUB_DISABLE_IMPLICIT_TOKEN ?? '')
  for (const tokenName of ['SVC_HF_TOKEN', ...(isClients ? ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'] : [])]) {
    const token = unlessEmpty(env[tokenName]?.trim())
    if (token !== undefined) return { token, tokenName }
  }
  const tokenFile = isClients ? hubTokenFile(env) : undefined
  return { token: undefined, tokenFile }
}

/** A relative path in such a variable is ignored, as XDG requires. */
const xdg = (value: string | undefined, ...fallback: string[]): string =>
  value !== undefined && value !== '' && isAbsolute(value) ? value : join(homeFolder(), ...fallback)

/** The configuration file's path, and whether it must exist: one that the user named must, the default need not. */
export function configPath(
  flags: ConfigFlags,
  env: Environment
): { readonly file: string; readonly required: boolean } {
  const named = flags.config ?? unlessEmpty(env.SVC_CONFIG)
  if (named !== undefined) return { file: resolve(named), required: true }
  return { file: join(xdg(env.XDG_CONFIG_HOME, '.config'), 'svc', 'config.toml'), required: false }
}

/** A mirror's clients spend the owner's disk when it fetches on demand: beyond this machine, the owner must allow that. */
function requireDecision({ hubAddr, ociAddr, onDemand, token }: MirrorConfig, isAnonymous: boolean): void {
  if (onDemand === undefined || token !== undefined || isAnonymous) return
  for (const [key, text] of Object.entries({ hub_addr: hubAddr, oci_addr: ociAddr })) {
    if (text === undefined || isLoopback(configuredAddress(text, `[mirror] ${key}`))) continue
    const choice = 'set SVC_MIRROR_TOKEN, or [mirror] on_demand_anonymous = true to serve anybody'
    throw new ConfigError(
      `[mirror] on_demand = true with ${key} = "${text}" lets any machine start downloads; ${choice}`
    )
  }
}

/** S3 clients cannot send a token: beyond this machine, and where mirrors require a token, they need keys. */
function requireKeys({ s3Addr, s3Keys, token }: MirrorConfig): void {
  if (s3Addr === undefined || s3Keys !== undefined) return
  if (token === undefined && isLoopback(configuredAddress(s3Addr, '[mirror] s3_addr'))) return
  const who = token === undefined ? `s3_addr = "${s3Addr}" lets any machine read` : 'SVC_MIRROR_TOKEN is set'
  throw new ConfigError(`[mirror] ${who}; set s3_keys = "FILE" to lines ID:SECRET`)
}

function mirrorOf(
  { isOnDemand, allows, bytesPerDay, timeoutMs, revisions, isAnonymous, ...mirror }: Settings['mirror'],
  env: Environment
): MirrorConfig {
  const onDemand = isOnDemand ? { allows, bytesPerDay, timeoutMs, revisions } : undefined
  const config = { ...mirror, onDemand, token: unlessEmpty(env.SVC_MIRROR_TOKEN?.trim()) }
  requireDecision(config, isAnonymous)
  requireKeys(config)
  return config
}

/** Fills in defaults; environment and flags override the file. @throws ConfigError for invalid values */
export function mergeConfig(file: FileConfig, flags: ConfigFlags, env: Environment): DaemonConfig {
  const { store, hub, swarm, catalog, mirror, network, metrics } = settingsOf(file)
  const root =
    flags.root ??
    unlessEmpty(env.SVC_ROOT) ??
    (store.root && absolutePath(store.root, '[store] root')) ??
    join(xdg(env.XDG_DATA_HOME, '.local', 'share'), 'svc')
  if (root === '') throw new ConfigError('--root must not be empty')
  const { usesClientToken, ...hubSettings } = hub
  return {
    store: { ...store, root: resolve(root) },
    hub: {
      ...hubSettings,
      endpoint: unlessEmpty(env.HF_ENDPOINT) ?? hub.endpoint,
      ...hubToken(env, usesClientToken)
    },
    swarm: { ...swarm, noSeedVerify: flags.noSeedVerify ?? swarm.noSeedVerify },
    catalog: {
      ...catalog,
      uploadLimitBytesPerSecond: catalog.uploadLimitBytesPerSecond ?? swarm.uploadLimitBytesPerSecond
    },
    mirror: mirrorOf(mirror, env),
    network,
    metrics,
    webseedKeys: webseedKeyConfigs(file.webseed),
    trust: trustRules(file.trust),
    views: standingViews(file.views)
  }
}

/** `$XDG_STATE_HOME/svc/roots`; undefined where the environment names no folder for state (spec disk.26). */
function memoryFolder({ XDG_STATE_HOME: state = '', HOME: home = '' }: Environment): string | undefined {
  const base = isAbsolute(state) ? state : isAbsolute(home) ? join(home, '.local', 'state') : undefined
  return base && join(base, 'svc', 'roots')
}

/** The configuration of a program: {@link mergeConfig}, and what it remembers from one start to the next. */
export function programConfig(file: FileConfig, flags: ConfigFlags, env: Environment): DaemonConfig {
  const config = mergeConfig(file, flags, env)
  return { ...config, store: { ...config.store, memory: memoryFolder(env), isNew: flags.new ?? false } }
}

/** Loads the whole configuration. @throws ConfigError when the file cannot be used */
export async function loadConfig(flags: ConfigFlags = {}, env: Environment = process.env): Promise<DaemonConfig> {
  const { file, required } = configPath(flags, env)
  return { file, ...programConfig(await readConfigFile(file, required), flags, env) }
}
