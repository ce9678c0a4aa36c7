import { isAbsolute, join, resolve } from 'node:path'
import { hubTokenFile } from '@svc/client/protocol'
import { isLoopback } from '@svc/internal-net'
import type { StandingFolder } from '@svc/library/parts'
import { ConfigError } from '../errors.ts'
import { configuredAddress, configuredRanges, configuredZone } from './address.ts'
import { readConfigFile } from './file.ts'
import type { FileConfig } from './keys.ts'
import { absolutePath, homeFolder } from './path.ts'
import { standingViews } from './standing.ts'
import { globsOf, type TrustRuleConfig, trustRules } from './trust.ts'
import { type WebseedKeyConfig, webseedKeyConfigs } from './webseed.ts'

/** `[store]` */
interface StoreConfig {
  readonly root: string
  readonly expect?: string | undefined
  /** Where it is remembered which store each root had; undefined: nowhere. */
  readonly memory?: string | undefined
  /** `--new`: whatever the root had before, what is there now is right, and a store is made where there is none. */
  readonly isNew?: boolean
  /** Beyond it, artifacts that can be fetched again are evicted. */
  readonly maxBytes: number | undefined
  readonly minFreeBytes: number
  /** The greatest age of a proof that another place has the evicted bytes. */
  readonly proofMs: number
}

/** `[hub]`, with the environment's settings for the hub. */
export interface HubConfig {
  /** Undefined: the public hub. */
  readonly endpoint: string | undefined
  /** `SVC_HF_TOKEN`, else `HF_TOKEN`. */
  readonly token: string | undefined
  /** The name of that variable, or the file of the hub client, for messages. */
  readonly tokenName?: string | undefined
  /** Where the hub client keeps the token of `hf auth login`; read at each import that has no other. */
  readonly tokenFile?: string | undefined
  readonly skipUnrecognized: boolean
  /** How often the hub is asked for newer commits. */
  readonly check: 'never' | 'daily'
}

/** `[swarm]` */
export interface SwarmConfig {
  readonly enabled: boolean
  /** `PUT /v1/seed` and `PUT /v1/upload-limit` change this key and the next while the daemon runs. */
  seed: boolean
  uploadLimitBytesPerSecond: number
  readonly noSeedVerify: boolean
  readonly dht: boolean
  readonly dhtBootstrap: readonly string[] | undefined
  readonly webseedAddr: string
  readonly peerAddr: string
  readonly trackers: readonly string[]
  readonly fillTimeoutMs: number
  readonly seedRestricted: boolean
  readonly seedOnImport: boolean
  /** Undefined: not decided yet, which means true. */
  readonly seedLocal: boolean | undefined
  /** Address ranges. */
  readonly trusted: readonly string[]
  readonly zone: string | undefined
  readonly lsd: boolean
}

/** `[catalog]` */
export interface CatalogConfig {
  readonly endpoint: string | undefined
  readonly uploadLimitBytesPerSecond: number
}

/** `[mirror] on_demand` and its further keys. */
export interface OnDemandConfig {
  /** Whether `on_demand_allow` names `owner/name`, without regard to case. */
  readonly allows: (name: string) => boolean
  readonly bytesPerDay: number
  readonly timeoutMs: number
  /** Commits that may be fetched: only those of a branch or tag of the hub, or any. */
  readonly revisions: 'named' | 'any'
}

/** `[mirror]`, with the environment's settings for it. */
export interface MirrorConfig {
  /** Undefined: no such listener. */
  readonly hubAddr: string | undefined
  readonly ociAddr: string | undefined
  readonly s3Addr: string | undefined
  /** Absolute. Undefined: clients of the S3 mirror need no key. */
  readonly s3Keys: string | undefined
  /** Further names of this machine, in lower case, that clients may use with any port. */
  readonly names: readonly string[]
  /** Undefined: nothing is fetched on demand. */
  readonly onDemand: OnDemandConfig | undefined
  /** `SVC_MIRROR_TOKEN`: required by the mirrors of hub and registries. */
  readonly token: string | undefined
}

/** The effective configuration: file, environment and flags merged, with defaults (spec conf.1, disk.3, disk.13). */
export interface DaemonConfig {
  /** The configuration file, which may be absent; undefined if there is none. */
  readonly file?: string
  /** `expect` is the id of the store that must be there. */
  readonly store: StoreConfig
  readonly hub: HubConfig
  readonly swarm: SwarmConfig
  readonly catalog: CatalogConfig
  readonly mirror: MirrorConfig
  /** `[metrics]` */
  readonly metrics: { readonly addr: string | undefined }
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

/** An empty variable counts as unset, as the XDG specification requires. */
const set = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value)

/** Our variable, else what the hub's own client uses (spec hub.4). */
function hubToken(env: Environment, usesClients: boolean): Pick<HubConfig, 'token' | 'tokenName' | 'tokenFile'> {
  const isClients = usesClients && !/^(?:1|on|yes|true)$/i.test(env.HF_HUB_DISABLE_IMPLICIT_TOKEN ?? '')
  for (const tokenName of ['SVC_HF_TOKEN', ...(isClients ? ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'] : [])]) {
    const token = set(env[tokenName]?.trim())
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
  const named = flags.config ?? set(env.SVC_CONFIG)
  if (named !== undefined) return { file: resolve(named), required: true }
  return { file: join(xdg(env.XDG_CONFIG_HOME, '.config'), 'svc', 'config.toml'), required: false }
}

/** `[store] expect`. @throws ConfigError for an invalid store id */
function expectedId(text: string | undefined): string | undefined {
  const id = set(text)?.toLowerCase()
  if (id === undefined || /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id
  throw new ConfigError(`[store] expect is ${JSON.stringify(text)}; write the id of a store, as "svc status" shows it`)
}

/** @throws ConfigError for an invalid host name or address */
function namesOf(names: readonly string[]): readonly string[] {
  for (const name of names) {
    if (/^(?:[a-z\d](?:[a-z\d._-]*[a-z\d])?|\[[\da-f:.]+\])$/i.test(name)) continue
    throw new ConfigError(`[mirror] names has ${JSON.stringify(name)}; write host names or addresses, without a port`)
  }
  return names.map((name) => name.toLowerCase())
}

const DEFAULT_DAY_BYTES = 500e9
const DEFAULT_IMPORT_SECONDS = 12 * 3600

/** @throws ConfigError for an invalid pattern of repositories */
function onDemandOf(mirror: NonNullable<FileConfig['mirror']>): OnDemandConfig | undefined {
  const { on_demand_allow: allow = ['*'], on_demand_bytes: bytesPerDay = DEFAULT_DAY_BYTES } = mirror
  for (const pattern of allow) {
    if (pattern === '*' || /^[A-Za-z0-9][\w.-]*(?:\/(?:\*|[A-Za-z0-9][\w.-]*))?$/.test(pattern)) continue
    const rule = 'write "owner/name", "name", "owner/*" or "*"'
    throw new ConfigError(`[mirror] on_demand_allow names ${JSON.stringify(pattern)}; ${rule}`)
  }
  const revisions = mirror.on_demand_revisions ?? 'named'
  if (revisions !== 'named' && revisions !== 'any')
    throw new ConfigError(`[mirror] on_demand_revisions is ${JSON.stringify(revisions)}; write "named" or "any"`)
  const timeoutMs = (mirror.on_demand_timeout ?? DEFAULT_IMPORT_SECONDS) * 1000
  const allows = globsOf(
    allow.map((pattern) => (pattern === '*' ? '**' : pattern)),
    (what) => new ConfigError(`[mirror] on_demand_allow: ${what}`)
  )
  return mirror.on_demand === true ? { allows, bytesPerDay, timeoutMs, revisions } : undefined
}

/** A mirror's clients spend the owner's disk when it fetches on demand: beyond this machine, the owner must allow that. */
function requireDecision({ hubAddr, ociAddr, onDemand, token }: MirrorConfig, isAnonymous = false): void {
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

function checkOf(text = 'never'): HubConfig['check'] {
  if (text === 'never' || text === 'daily') return text
  throw new ConfigError(`[hub] check = ${JSON.stringify(text)}: it is "never" or "daily"`)
}

const DEFAULT_PROOF_DAYS = 30
const MINUTE_MS = 60_000
const DAY_MS = 24 * 3600_000

const storeOf = (root: string, store: FileConfig['store'] = {}): StoreConfig => ({
  root,
  expect: expectedId(store.expect),
  maxBytes: store.max_bytes,
  minFreeBytes: store.min_free ?? 0,
  // at least a minute: a fresh proof is used a moment later
  proofMs: Math.max(MINUTE_MS, (store.proof_days ?? DEFAULT_PROOF_DAYS) * DAY_MS)
})

/** Fills in defaults; environment and flags override the file. @throws ConfigError for invalid values */
export function mergeConfig(file: FileConfig, flags: ConfigFlags, env: Environment): DaemonConfig {
  const { swarm = {}, hub = {}, catalog = {}, mirror = {}, metrics = {} } = file
  const given = set(file.store?.root)
  const root =
    flags.root ??
    set(env.SVC_ROOT) ??
    (given && absolutePath(given, '[store] root')) ??
    join(xdg(env.XDG_DATA_HOME, '.local', 'share'), 'svc')
  if (root === '') throw new ConfigError('--root must not be empty')
  const upload = swarm.upload_limit ?? 0
  const s3Keys = set(mirror.s3_keys)
  const mirrors: MirrorConfig = {
    hubAddr: set(mirror.hub_addr),
    ociAddr: set(mirror.oci_addr),
    s3Addr: set(mirror.s3_addr),
    s3Keys: s3Keys && absolutePath(s3Keys, '[mirror] s3_keys'),
    names: namesOf(mirror.names ?? []),
    onDemand: onDemandOf(mirror),
    token: set(env.SVC_MIRROR_TOKEN?.trim())
  }
  requireDecision(mirrors, mirror.on_demand_anonymous)
  requireKeys(mirrors)
  return {
    store: storeOf(resolve(root), file.store),
    hub: {
      endpoint: set(env.HF_ENDPOINT) ?? set(hub.endpoint),
      ...hubToken(env, hub.use_client_token ?? true),
      skipUnrecognized: hub.skip_unrecognized ?? true,
      check: checkOf(hub.check)
    },
    swarm: {
      enabled: swarm.enabled ?? true,
      seed: swarm.seed ?? true,
      uploadLimitBytesPerSecond: upload,
      noSeedVerify: flags.noSeedVerify ?? swarm.no_seed_verify ?? false,
      dht: swarm.dht ?? true,
      dhtBootstrap: swarm.dht_bootstrap,
      webseedAddr: swarm.webseed_addr ?? '127.0.0.1:0',
      peerAddr: swarm.peer_addr ?? '0.0.0.0:0',
      trackers: swarm.trackers ?? [],
      fillTimeoutMs: (swarm.fill_timeout ?? 600) * 1000,
      seedRestricted: swarm.seed_restricted ?? false,
      seedOnImport: swarm.seed_on_import ?? false,
      seedLocal: swarm.seed_local,
      trusted: configuredRanges(swarm.trusted ?? []),
      zone: configuredZone(set(swarm.zone)),
      lsd: swarm.lsd ?? false
    },
    catalog: {
      endpoint: set(catalog.endpoint),
      uploadLimitBytesPerSecond: catalog.upload_limit ?? upload
    },
    mirror: mirrors,
    metrics: { addr: set(metrics.addr) },
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
