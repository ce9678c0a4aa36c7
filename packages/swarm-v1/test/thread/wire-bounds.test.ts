import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { encodeBencode } from '@svc/metainfo'
import Wire from 'bittorrent-protocol'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { boundWires } from '../../src/thread/wire-bounds.ts'

type Internals = Record<'_write' | '_onMessageLength' | '_onMessage', (...given: never[]) => void> & {
  _parserSize: number
  readonly _buffer: readonly Uint8Array[]
  destroy(): void
  parse(size: number, done: (message: Uint8Array) => void): void
  _parse?(size: number, done: (message: Uint8Array) => void): void
  use(extension: unknown): void
  readonly ut_pex: Record<'_remoteAddedPeers' | '_remoteDroppedPeers', object> & {
    on(event: 'peer', listener: (address: string) => void): void
  }
}
const WireClass = Wire as { new (): Internals; readonly prototype: Internals }

/** Other files of this process have the library's own behaviour. */
function whileBounded(work: () => void): void {
  const { prototype } = WireClass
  const before = Object.getOwnPropertyDescriptors(prototype)
  try {
    boundWires()
    work()
  } finally {
    for (const name of ['_write', '_onMessageLength', '_onMessage'])
      Object.defineProperty(prototype, name, before[name]!)
  }
}

test('a message that arrives byte by byte is kept in few fragments, and is complete', () => {
  whileBounded(() => {
    const wire = new WireClass()
    const whole: Uint8Array[] = []
    const bytes = Buffer.from(Array.from({ length: 262_144 }, (_, at) => at % 251))
    wire._parse!(bytes.length, (message) => void whole.push(message))
    const write = wire._write as unknown as (bytes: Uint8Array, done: () => void) => void
    let most = 0
    for (let at = 0; at < bytes.length; at++) {
      write.call(wire, bytes.subarray(at, at + 1), () => undefined)
      most = Math.max(most, wire._buffer.length)
    }
    expect(whole).toHaveLength(1)
    expect(Buffer.compare(whole[0]!, bytes)).toBe(0)
    expect(most).toBeLessThan(300)
    wire.destroy()
  })
})

test('long fragments are kept as they arrived, and joined once', () => {
  whileBounded(() => {
    const wire = new WireClass()
    wire._parse!(16_384, () => undefined)
    const write = wire._write as unknown as (bytes: Uint8Array, done: () => void) => void
    const fragments = Array.from({ length: 7 }, () => Buffer.alloc(2_000))
    for (const fragment of fragments) write.call(wire, fragment, () => undefined)
    expect(wire._buffer.every((kept, at) => kept === fragments[at])).toBe(true)
    wire.destroy()
  })
})

test('messages are read the same however they are split', () => {
  const part = fc.integer({ min: 1, max: 3_000 })
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), fc.array(part, { maxLength: 60 }), (sizes, cuts) => {
      whileBounded(() => {
        const wire = new WireClass()
        const sent = sizes.map((size, n) => Buffer.alloc(size, n + 1))
        const whole: Buffer[] = []
        const next = (message: Uint8Array): void => {
          whole.push(Buffer.from(message))
          if (whole.length < sizes.length) wire._parse!(sizes[whole.length]!, next)
        }
        wire._parse!(sizes[0]!, next)
        const write = wire._write as unknown as (bytes: Uint8Array, done: () => void) => void
        let rest = Buffer.concat(sent)
        for (const cut of [...cuts, Number.POSITIVE_INFINITY]) {
          if (rest.length > 0) write.call(wire, rest.subarray(0, cut), () => undefined)
          rest = rest.subarray(Math.min(cut, rest.length))
        }
        expect(whole).toEqual(sent)
        wire.destroy()
      })
    }),
    { numRuns: 100 }
  )
})

test('a peer that names others for hours leaves only a few thousand addresses behind', async () => {
  // the library that webtorrent uses
  const webtorrent = pathToFileURL(createRequire(import.meta.url).resolve('webtorrent'))
  const { default: utPex } = (await import(new URL('../ut_pex/index.js', webtorrent).href)) as {
    readonly default: () => unknown
  }
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    whileBounded(() => {
      const wire = new WireClass()
      wire.use(utPex())
      const heard = new Set<string>()
      wire.ut_pex.on('peer', (address) => heard.add(address))
      const receive = wire._onMessage as unknown as (message: Uint8Array) => void
      const addresses = (minute: number, net: number): Buffer =>
        Buffer.concat(
          Array.from({ length: 500 }, (_, at) => Buffer.from([net, minute, at >> 8, at & 0xff, 0x1a, 0xe1]))
        )
      for (let minute = 0; minute < 12; minute++) {
        vi.setSystemTime((minute + 1) * 61_000)
        const named = encodeBencode({ added: addresses(minute, 1), dropped: addresses(minute, 2) })
        receive.call(wire, Buffer.concat([Buffer.from([20, 1]), named]))
        const { _remoteAddedPeers: added, _remoteDroppedPeers: dropped } = wire.ut_pex
        expect(Math.max(Object.keys(added).length, Object.keys(dropped).length)).toBeLessThanOrEqual(2_500)
      }
      expect(heard.size).toBe(6_000)
      wire.destroy()
    })
  } finally {
    vi.useRealTimers()
  }
})
