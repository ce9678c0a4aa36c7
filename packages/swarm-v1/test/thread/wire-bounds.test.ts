import Wire from 'bittorrent-protocol'
import { expect, test } from 'vitest'
import { boundWires } from '../../src/thread/wire-bounds.ts'

type Internals = Record<'_write' | '_onMessageLength' | '_onMessage', (...given: never[]) => void> & {
  _parserSize: number
  readonly _buffer: readonly Uint8Array[]
  destroy(): void
  parse(size: number, done: (message: Uint8Array) => void): void
  _parse?(size: number, done: (message: Uint8Array) => void): void
}
const WireClass = Wire as { new (): Internals; readonly prototype: Internals }

test('fragments of a message are kept as they came, and joined once it is whole', () => {
  const { prototype } = WireClass
  const before = Object.getOwnPropertyDescriptors(prototype)
  try {
    boundWires()
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
  } finally {
    // other files of this process have the library's own behaviour
    for (const name of ['_write', '_onMessageLength', '_onMessage'])
      Object.defineProperty(prototype, name, before[name]!)
  }
})
