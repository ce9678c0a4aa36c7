import { isHost, isPort } from '@svc/internal-net'
import { isDigest, type Sha256Digest } from '@svc/ref'
import { OciError } from './errors.ts'

/** A repository of a registry, with a tag or a digest (distribution specification 1.1). */
export interface RegistryReference {
  /** `host` or `host:port`, IPv6 in brackets. */
  readonly registry: string
  readonly repository: string
  /** Defaults to `latest`. Unused when there is a digest. */
  readonly tag: string
  readonly digest?: Sha256Digest | undefined
}

const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const MAX_REPOSITORY_CHARACTERS = 255

/**
 * Parses `registry/name[:tag][@sha256:…]`. The registry is required: there is no default one.
 * @throws OciError `E_BAD_REFERENCE`
 */
export function parseRegistryReference(text: string): RegistryReference {
  const bad = (why: string): OciError =>
    new OciError('E_BAD_REFERENCE', `${JSON.stringify(text.slice(0, 300))} is not a registry/name:tag: ${why}`)
  const at = text.indexOf('@')
  const digest = at < 0 ? undefined : text.slice(at + 1)
  if (digest !== undefined && !isDigest(digest)) throw bad('after the @ there must be a SHA-256 digest')
  const named = at < 0 ? text : text.slice(0, at)
  const slash = named.indexOf('/')
  const registry = slash < 0 ? '' : named.slice(0, slash)
  if (!isRegistry(registry))
    throw bad('it must begin with the host of a registry, as in registry.example/team/model:q4_k_m')
  const colon = named.indexOf(':', slash)
  const repository = colon < 0 ? named.slice(slash + 1) : named.slice(slash + 1, colon)
  const tag = colon < 0 ? 'latest' : named.slice(colon + 1)
  if (repository.length > MAX_REPOSITORY_CHARACTERS || !REPOSITORY.test(repository))
    throw bad('the name must have lower-case letters and digits, with single separators between them')
  if (!TAG.test(tag)) throw bad('a tag must have at most 128 letters, digits, ".", "_" and "-"')
  return { registry, repository, tag, ...(digest !== undefined && { digest }) }
}

/** Like {@link parseRegistryReference}, or undefined. */
export function tryParseRegistryReference(text: string): RegistryReference | undefined {
  try {
    return parseRegistryReference(text)
  } catch {
    return undefined
  }
}

/** Docker's rule for whether the first segment of a name is a registry: it has a dot or a port, or is `localhost`. */
function isRegistry(text: string): boolean {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::(\d{1,5}))?$/.exec(text)
  if (match === null) return false
  const host = match[1] ?? match[2]!
  if (match[3] !== undefined && !isPort(Number(match[3]))) return false
  return isHost(host) && (match[3] !== undefined || host.includes('.') || host.includes(':') || host === 'localhost')
}

/** True for a registry on this machine, which is accessed without TLS as container tools do. */
export const isLoopbackRegistry = (registry: string): boolean =>
  /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d+)?$/.test(registry)

/** `registry/name@digest` or `registry/name:tag`. */
export const formatRegistryReference = ({ registry, repository, tag, digest }: RegistryReference): string =>
  `${registry}/${repository}${digest === undefined ? `:${tag}` : `@${digest}`}`
