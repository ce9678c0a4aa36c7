import { expect, it } from 'vitest'
import { diskUse, type StoredModel } from '../src/models/disk-use.ts'

const model = (ref: string, ...digests: string[]): StoredModel => ({
  ref,
  repo: ref.slice(0, ref.indexOf(':')),
  digests: new Set(digests)
})

it('reports the space of a model and of a repository, alone and shared', () => {
  const sizes = new Map([
    ['weights', 1000],
    ['other', 500],
    ['config', 10],
    ['licence', 1]
  ])
  const use = diskUse(
    [
      model('a/one:q4', 'weights', 'config', 'licence'),
      model('a/one:q8', 'other', 'config', 'licence'),
      model('b/two:q4', 'licence', 'unknown'),
      model('b/two:again', 'licence', 'unknown')
    ],
    sizes
  )
  expect(use.models).toEqual([
    { ref: 'a/one:q4', bytes: 1011, aloneBytes: 1000, sharedBytes: 11 },
    { ref: 'a/one:q8', bytes: 511, aloneBytes: 500, sharedBytes: 11 },
    { ref: 'b/two:q4', bytes: 1, aloneBytes: 0, sharedBytes: 1 },
    { ref: 'b/two:again', bytes: 1, aloneBytes: 0, sharedBytes: 1 }
  ])
  // blobs of a repository are shared if another repository needs them
  expect(use.repositories).toEqual([
    { ref: 'a/one', bytes: 1511, aloneBytes: 1510, sharedBytes: 1 },
    { ref: 'b/two', bytes: 1, aloneBytes: 0, sharedBytes: 1 }
  ])
})

/** Counts how often it is iterated. */
class Watched extends Set<string> {
  walks = 0

  override [Symbol.iterator](): SetIterator<string> {
    this.walks += 1
    return super[Symbol.iterator]()
  }
}

it("walks a model's blobs equally often with 500 models as with 5", () => {
  const walksAmong = (count: number): number => {
    const first = new Watched(['shared', 'own-0'])
    const others = Array.from({ length: count - 1 }, (_, at) => model(`a/m-${at}:q4`, 'shared', `own-${at + 1}`))
    diskUse([{ ref: 'a/first:q4', repo: 'a/first', digests: first }, ...others], new Map())
    return first.walks
  }
  expect(walksAmong(500)).toBe(walksAmong(5))
})
