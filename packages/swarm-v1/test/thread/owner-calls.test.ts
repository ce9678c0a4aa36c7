import { expect, test } from 'vitest'
import type { FromThread } from '../../src/messages.ts'
import { OwnerCalls } from '../../src/thread/owner-calls.ts'

type Get = Extract<FromThread, { kind: 'get' }>

test('at most 64 calls are with the owner, and the next goes out with each answer', async () => {
  const told: Get[] = []
  const calls = new OwnerCalls((message) => told.push(message as Get))
  const { read } = calls.of(1)
  const reads = Array.from({ length: 66 }, (_, piece) => read(piece, 0, 1))
  expect(told.length).toBe(64)
  calls.answer(told[0]!.call, Uint8Array.of(7))
  expect(await reads[0]).toEqual(Uint8Array.of(7))
  expect(told.map(({ piece }) => piece)).toEqual(Array.from({ length: 65 }, (_, piece) => piece))
})

test('a torrent that was left takes no places: the owner does not answer its calls', async () => {
  const told: Get[] = []
  const calls = new OwnerCalls((message) => told.push(message as Get))
  const left = calls.of(1)
  const other = calls.of(2)
  for (let piece = 0; piece < 70; piece++) void left.read(piece, 0, 1)
  const found = other.read(5, 0, 1)
  expect(told.every(({ id }) => id === 1)).toBe(true)
  calls.left(1)
  void left.read(99, 0, 1)
  expect(told.slice(64)).toMatchObject([{ id: 2, piece: 5 }])
  calls.answer(told.at(-1)!.call, undefined)
  expect(await found).toBeUndefined()
})
