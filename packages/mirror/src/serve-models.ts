import { formatAddress, isLoopback, type PeerAddress } from '@svc/internal-net'
import type { ReadableModels, TrustRuleSource } from '@svc/library'
import { type ServedParts, servedPartsOf } from '@svc/library/parts'
import { MirrorError, type MirrorKind } from './mirror-error.ts'
import { Mirrors } from './mirrors.ts'
import type { RunningFetches } from './upstream.ts'

/** Where a port listens; default: one of the system's choice, for this machine. */
export interface Port {
  /** An IP address. */
  readonly host?: string
  readonly port?: number
}

/** What the models are served as, each at a port of its own; what is absent is off. */
export interface ServeOptions {
  /** As a model hub: a model is the repository of its name, or that of the hub which it came from. */
  readonly hub?: Port
  /** As an OCI registry, for clients of registries and for Ollama. */
  readonly oci?: Port
  /** As an object store with the bucket `models`. */
  readonly s3?: Port
  /** Required by hub and registry, as a bearer token or a password. */
  readonly token?: string | undefined
  /** Required by the object store: secrets by the ID of their key. */
  readonly s3Keys?: ReadonlyMap<string, string> | undefined
  /** Further host names, in lower case, that clients may use for this machine. */
  readonly names?: readonly string[] | undefined
  /**
   * Whose signature models need to be served, for what `readLibrary` gave: those of the store's owner, which this process does
   * not know. Default: none.
   */
  readonly trust?: readonly TrustRuleSource[] | undefined
}

/** Models that are served until `close`. */
export interface ModelServer<Kind extends MirrorKind = MirrorKind> {
  /** The base address of each that is on, `http://host:port`. */
  readonly urls: Readonly<Record<Kind, string>>
  /** Cuts connections, and ends listening. Idempotent. */
  close(): Promise<void>
}

/**
 * Serves the models of a library that this process has opened, complete and arriving ones, or the complete ones of a store that it
 * reads beside its owner; but none that the owner keeps private or that a credential was needed for. Close it before the library.
 * @throws MirrorError `E_LISTEN` for an address that cannot be used; `E_OPTION` for an object store that other machines
 * reach, and that requires no key; LibraryError `E_TRUST` for a key that cannot be read, `E_INVALID` for `trust` with an own library
 */
export async function serveModels<Options extends ServeOptions>(
  library: ReadableModels,
  options: Options
): Promise<ModelServer<Extract<keyof Options, MirrorKind>>> {
  const { hub, oci, s3, s3Keys, token, names, trust } = options
  checkSecrets(options)
  if (s3 !== undefined && s3Keys === undefined && !(token === undefined && isLoopback(addressOf(s3))))
    throw new MirrorError('E_OPTION', 'the object store needs s3Keys: other machines reach it, or a token is set', {
      kind: 's3'
    })
  const { running, close: closeParts, ...parts } = await servedPartsOf(library, trust)
  const deps = { ...parts, jobs: fetchesOf(running), namesAreRepos: true }
  const at = Object.fromEntries(
    Object.entries({ hub, oci, s3 }).flatMap(([kind, port]) => (port === undefined ? [] : [[kind, addressOf(port)]]))
  )
  const keys = s3Keys && (async () => s3Keys)
  const mirrors = await Mirrors.listen(deps, { at, s3Keys: keys, token, names }).catch(async (error: unknown) => {
    await closeParts()
    throw error
  })
  const close = async (): Promise<void> => {
    await mirrors.close()
    await closeParts()
  }
  let closed: Promise<void> | undefined
  return {
    urls: Object.fromEntries(
      Object.entries(mirrors.addresses()).map(([kind, address]) => [kind, `http://${formatAddress(address)}`])
    ) as Record<MirrorKind, string>,
    close: () => (closed ??= close())
  }
}

/** Of a key of the object store, in characters. */
const MIN_SECRET_CHARS = 8

/** A secret that somebody forgot to set would let everybody in. @throws MirrorError `E_OPTION` */
function checkSecrets({ token, s3Keys }: ServeOptions): void {
  if (token?.trim() === '') throw new MirrorError('E_OPTION', 'the token is empty; without one, leave it out')
  if (s3Keys === undefined) return
  const isWeak = [...s3Keys].some(([id, secret]) => id === '' || secret.length < MIN_SECRET_CHARS)
  if (s3Keys.size === 0 || isWeak)
    throw new MirrorError('E_OPTION', `s3Keys needs a key, and secrets of at least ${MIN_SECRET_CHARS} characters`, {
      kind: 's3'
    })
}

const addressOf = ({ host = '127.0.0.1', port = 0 }: Port): PeerAddress => ({ host, port })

/** The operations of a library: it fetches for its owner, and nothing for clients. */
const fetchesOf = (running: ServedParts['running']): RunningFetches => ({
  require: (id) => ({ id }),
  over: (id) =>
    running.over(id).then(
      () => ({ id }),
      ({ code, message }: { code?: string; message: string }) => ({ id, error: { code: `${code}`, message } })
    ),
  giveUp: async () => undefined,
  openOf: (manifest) => running.openOf(manifest),
  fetchOf: (manifest) => running.openOf(manifest)[0]
})
