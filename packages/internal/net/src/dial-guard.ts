import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { type AddressReach, addressReach } from './address.ts'

/**
 * On whose word an address is dialled (SECURITY.md). `owner`: what the owner of this machine configured or asked for.
 * Others are the word of strangers, such as a redirect, by where the stranger answers from: `machine` on this machine,
 * `network` in a private network, `internet` elsewhere, or not known.
 */
export type DialPolicy = 'owner' | 'machine' | 'network' | 'internet'

/** Only the owner may name `other` addresses: clouds serve credentials at link-local ones. */
const REACHES: Readonly<Record<Exclude<DialPolicy, 'owner'>, ReadonlySet<AddressReach>>> = {
  machine: new Set(['public', 'private', 'loopback']),
  network: new Set(['public', 'private']),
  internet: new Set(['public'])
}

/** Names of this machine, whatever the resolver says (RFC 6761 §6.3). */
const LOCALHOST = /^(?:.*\.)?localhost\.?$/i

const REFUSED = 'ERR_REFUSED_ADDRESS'

class RefusedAddressError extends Error {
  override readonly name = 'RefusedAddressError'
  readonly code = REFUSED

  constructor(host: string) {
    super(`${host} is a loopback, private or reserved address, which its source must not name`)
  }
}

/** By its code: an error's class does not cross threads. */
export const isRefusedAddress = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === REFUSED

/** Whether an IP address may be dialled. Names are not addresses: false, unless on the owner's word. */
const mayDial = (ip: string, policy: DialPolicy): boolean => policy === 'owner' || REACHES[policy].has(addressReach(ip))

/**
 * The one place that decides what is dialled (spec hub.8). A name with several addresses is refused as a whole if one of them is: the
 * resolver of a stranger's name is the stranger, and one that mixes addresses wants to reach the inner one. The addresses
 * that were judged are those that are dialled, so that a name cannot lead elsewhere in between.
 */
export class DialGuard {
  readonly policy: DialPolicy
  readonly #refusal: (host: string) => Error

  constructor(policy: DialPolicy, refusal: (host: string) => Error = (host) => new RefusedAddressError(host)) {
    this.policy = policy
    this.#refusal = refusal
  }

  /**
   * Judges a host without asking a resolver: a literal address (which is connected to without {@link lookup}), or a
   * name of this machine. IPv6 may have its brackets. @throws the constructor's `refusal`
   */
  check(host: string): void {
    const plain = withoutBrackets(host)
    const isLiteral = isIP(plain) !== 0
    if (isLiteral ? mayDial(plain, this.policy) : !LOCALHOST.test(plain) || mayDial('127.0.0.1', this.policy)) return
    throw this.#refusal(host)
  }

  /** The addresses of a host, at least one. @throws the constructor's `refusal`; the resolver's error */
  async resolve(host: string): Promise<LookupAddress[]> {
    this.check(host)
    const found = await allAddresses(host)
    if (found.length === 0 || found.some(({ address }) => !mayDial(address, this.policy))) throw this.#refusal(host)
    return found
  }

  /** Whether {@link resolve} refuses a host; false for one that cannot be resolved here, as behind a proxy. */
  async refuses(host: string): Promise<boolean> {
    return this.resolve(host).then(() => false, isRefusedAddress)
  }

  /** {@link resolve} for sockets. */
  readonly lookup: LookupFunction = (host, { all, ...options }, callback) => {
    systemLookup(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '', 0)
      const [first] = found
      if (first === undefined || found.some(({ address }) => !mayDial(address, this.policy)))
        return callback(this.#refusal(host), '', 0)
      if (all === true) callback(null, found)
      else callback(null, first.address, first.family)
    })
  }
}

/** The policy for what a host names: the strictest of its addresses; `internet` if they are unknown, as behind a proxy. */
export async function policyOfNamer(host: string): Promise<Exclude<DialPolicy, 'owner'>> {
  if (LOCALHOST.test(host)) return 'machine'
  const found = await allAddresses(withoutBrackets(host)).catch(() => [])
  return policyOfAddresses(found.map(({ address }) => address))
}

/**
 * On whose word the URLs that a server leads to are requested: those at its own host on the word of whoever named the server, by default
 * the owner; others on the server's word, which may not allow more.
 */
export function policyFrom(server: URL, named: DialPolicy = 'owner'): (url: URL) => Promise<DialPolicy> {
  let others: Promise<DialPolicy> | undefined
  return async (url) =>
    url.host === server.host ? named : (others ??= policyOfNamer(server.hostname).then((own) => stricterOf(own, named)))
}

/** The policy for what somebody at these addresses names. */
export function policyOfAddresses(addresses: readonly string[]): Exclude<DialPolicy, 'owner'> {
  const reaches = new Set(addresses.map(addressReach))
  if (reaches.size === 0 || reaches.has('public') || reaches.has('other')) return 'internet'
  return reaches.has('private') ? 'network' : 'machine'
}

/** From the widest to the strictest. */
const POLICIES: readonly DialPolicy[] = ['owner', 'machine', 'network', 'internet']

const stricterOf = (a: DialPolicy, b: DialPolicy): DialPolicy => (POLICIES.indexOf(a) < POLICIES.indexOf(b) ? b : a)

const withoutBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

const allAddresses = (host: string): Promise<LookupAddress[]> =>
  isIP(host) !== 0
    ? Promise.resolve([{ address: host, family: isIP(host) }])
    : new Promise((resolve, reject) =>
        systemLookup(host, { all: true }, (error, found) => (error ? reject(error) : resolve(found)))
      )
