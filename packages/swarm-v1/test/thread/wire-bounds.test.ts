import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { encodeBencode } from '@svc/metainfo'
import Wire from 'bittorrent-protocol'
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

test('fragments of a message are kept as they came, and joined once it is whole', () => {
  whileBounded(() => {
    const wire = new WireClass()
    const whole: Uint8Array[] = []
    wire._parse!(1_000, (message) => void whole.push(message))
    const bytes = Buffer.from(Array.from({ length: 1_000 }, (_, at) => at % 251))
    const write = wire._write as unknown as (bytes: Uint8Array, done: () => void) => void
    for (let at = 0; at < 999; at++) {
      write.call(wire, bytes.subarray(at, at + 1), () => undefined)
      if (wire._buffer.length !== at + 1) expect(wire._buffer.length).toBe(at + 1)
    }
    write.call(wire, bytes.subarray(999), () => undefined)
    expect(whole.map((message) => Buffer.from(message))).toEqual([bytes])
    wire.destroy()
  })
})

test('addresses that one peer names by exchange, some each minute for hours: no more than a few thousand are kept', async () => {
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
