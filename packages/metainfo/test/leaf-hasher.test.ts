import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import createLeafHasher from '../src/leaf-hasher.ts'
import { leafHasherUrl } from '../src/leaf-hasher-url.ts'
import { ancestorLayer, leafLayer, piecesRoot, rootOfSubtrees, SUBTREE_LEVEL } from '../src/merkle.ts'
import { seededBytes } from './seeded-bytes.ts'

test('property: any chunking and any size hint give the leaf layer', () => {
  const data = seededBytes(16_384 * 140 + 777)
  fc.assert(
    fc.property(
      fc.oneof(
        fc.nat(data.length),
        fc.constantFrom(...[1, 2, 63, 64, 65, 127, 128, 129].map((blocks) => blocks * 16_384))
      ),
      fc.array(fc.oneof(fc.constantFrom(0, 1, 16_383, 16_384, 16_385, 65_536), fc.nat(200_000)), { maxLength: 30 }),
      fc.option(fc.nat(3_000_000), { nil: undefined }),
      (size, cuts, hint) => {
        const hasher = createLeafHasher(undefined, hint)
        let at = 0
        for (const cut of cuts) {
          const end = Math.min(size, at + cut)
          hasher.update(data.subarray(at, end))
          at = end
        }
        hasher.update(data.subarray(at, size))
        const leaves = leafLayer(data.subarray(0, size))
        expect(Buffer.compare(hasher.digest(), leaves)).toBe(0)
        const { root, subtrees } = hasher.further()
        expect(root).toEqual(leaves.length > 32 ? piecesRoot(leaves, size) : undefined)
        expect(subtrees).toEqual(size > 1 << 20 ? ancestorLayer(leaves, 0, SUBTREE_LEVEL) : undefined)
        if (subtrees !== undefined) expect(rootOfSubtrees(subtrees, size)).toEqual(root)
      }
    ),
    { numRuns: 60 }
  )
})

test('an absurd size hint does not allocate that much', () => {
  const hasher = createLeafHasher(undefined, Number.MAX_SAFE_INTEGER)
  expect(hasher.digest()).toHaveLength(0)
})

test('the module loads by its URL in a worker thread', async () => {
  const script = `
    const { parentPort, workerData } = require('node:worker_threads')
    import(workerData.url).then(({ default: create }) => {
      const hasher = create(undefined, 20000)
      hasher.update(new Uint8Array(20000))
      parentPort.postMessage(hasher.digest())
    })`
  const worker = new Worker(script, { eval: true, workerData: { url: leafHasherUrl } })
  try {
    const leaves = await new Promise<Uint8Array>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    expect(Buffer.compare(leaves, leafLayer(new Uint8Array(20_000)))).toBe(0)
  } finally {
    await worker.terminate()
  }
})
