// Loaded before everything else, in the process and in each of its threads. Names under `.test` lead where the tests want
// them, and nothing leaves this machine: what would connect to an address that is not loopback is noted in a file that all
// share, and fails as without a network.

import dns, { type LookupAddress } from 'node:dns'
import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'inner.test': ['169.254.7.7'],
  'mixed.test': ['127.0.0.1', '169.254.7.7'],
  'mixed-6.test': ['127.0.0.1', 'fe80::7'],
  'loopback.test': ['127.0.0.1'],
  'in-the-open.test': ['127.0.0.1', '8.8.8.8'],
  'network.test': ['10.9.9.9'],
  'internet.test': ['8.8.4.4']
}
/** Servers of a test: connections to these addresses lead to this machine, and say that they did not. */
const SERVERS = new Set([...NAMES['network.test']!, ...NAMES['internet.test']!])

const lookup = dns.lookup
type Done = (error: NodeJS.ErrnoException | null, ...found: unknown[]) => void
dns.lookup = ((name: string, options: { all?: boolean }, done: Done) => {
  const addresses = NAMES[name]
  if (addresses === undefined) return lookup(name, options, done as never)
  const found = addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }))
  queueMicrotask(() => (options.all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)))
}) as typeof dns.lookup
syncBuiltinESMExports()

type Handle = Record<string, (...given: never[]) => number>
const binding = (process as unknown as { binding(name: string): Record<string, { prototype: Handle }> }).binding
const ENETUNREACH = -101
const servers = new WeakMap<object, string>()
/** Calls of handles that name a remote address, and which of their arguments it is. */
const CALLS: readonly (readonly [handle: Handle, name: string, at: number])[] = [
  [binding('tcp_wrap').TCP!.prototype, 'connect', 1],
  [binding('tcp_wrap').TCP!.prototype, 'connect6', 1],
  [binding('udp_wrap').UDP!.prototype, 'connect', 0],
  [binding('udp_wrap').UDP!.prototype, 'connect6', 0],
  [binding('udp_wrap').UDP!.prototype, 'send', 4],
  [binding('udp_wrap').UDP!.prototype, 'send6', 4]
]
for (const [handle, name, at] of CALLS) {
  const original = handle[name]!
  handle[name] = function (this: object, ...given: unknown[]) {
    const address = given[at]
    if (typeof address === 'string' && SERVERS.has(address)) {
      servers.set(this, address)
      return original.apply(this, given.with(at, '127.0.0.1') as never[])
    }
    // a connected UDP socket names none
    if (typeof address !== 'string' || /^(?:127\.|::1$)/.test(address)) return original.apply(this, given as never[])
    appendFileSync(process.env.SVC_TEST_DIALLED!, `${address}\n`)
    return ENETUNREACH
  }
}
const tcp = binding('tcp_wrap').TCP!.prototype
const { getpeername } = tcp
tcp.getpeername = function (this: object, out: { address?: string }) {
  const result = getpeername!.call(this, out as never)
  const address = servers.get(this)
  if (address !== undefined) out.address = address
  return result
}
