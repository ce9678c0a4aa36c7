import { buildInfo, TorrentLayout } from '@svc/metainfo'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FileProgress } from '../../src/download/file-progress.ts'
import type { TorrentStorage } from '../../src/storage.ts'

const PIECE = 16_384
const root = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)
const files = [
  { path: 'a', length: 3 * PIECE, piecesRoot: root(1) },
  { path: 'b', length: 0 },
  { path: 'c', length: 2 * PIECE - 7, piecesRoot: root(2) }
]
const layout = new TorrentLayout(buildInfo({ name: 'x', pieceLength: PIECE, files }))
const step = fc.record({ kind: fc.constantFrom('verified', 'verified', 'lost'), piece: fc.nat(layout.pieceCount - 1) })

test('whatever is verified, refused and lost, bytes and files are counted', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.nat(6), async (steps, refusedAt) => {
      let asked = 0
      const storage: Pick<TorrentStorage, 'fileComplete' | 'writer'> = {
        fileComplete: async () => (asked++ === refusedAt ? 'wrong' : 'ok'),
        writer: async () => ({ fd: undefined, write: async () => {}, markWritten: () => {}, unmark: () => {} })
      }
      const progress = new FileProgress(layout, storage as TorrentStorage, (event) => {
        if (event.kind === 'failed') throw event.error
      })
      for (const { kind, piece } of steps) {
        const isNew = !progress.have.has(piece)
        if (kind === 'lost') progress.lose(layout.fileOf(piece))
        else expect(progress.piece(piece)).toBe(isNew)
        // the storage has its say
        await new Promise((resolve) => setImmediate(resolve))
        let bytes = 0
        for (let at = 0; at < layout.pieceCount; at += 1)
          if (progress.have.has(at)) bytes += layout.span(at).lengthBytes
        expect(progress.verifiedBytes).toBe(bytes)
        expect(progress.filesLeft).toBe(layout.files.filter((file) => !progress.isDone(file)).length)
        for (const file of layout.files) {
          const missing = Array.from({ length: file.pieceCount }, (_, at) => !progress.have.has(file.firstPiece + at))
          if (file.pieceCount > 0) expect(progress.isDone(file)).toBe(!missing.includes(true))
        }
      }
    })
  )
})
