import { expect, test } from 'vitest'
import { type ArtifactSource, mergedSource, shownOrigin } from '../../src/library/origin.ts'

const COMMIT = 'a'.repeat(40)
const from = (more: Partial<ArtifactSource>): ArtifactSource => ({
  kind: 'hf',
  repo: 'Acme/M',
  revision: COMMIT,
  ...more
})
const OTHER = 'b'.repeat(40)

test.each([
  ['a branch, then the commit', from({ follows: 'dev' }), from({ byCommit: true }), 'dev'],
  ['a branch, then a client of a mirror', from({ follows: 'dev' }), from({ branch: 'main', onDemand: true }), 'dev'],
  [
    'a client of a mirror, then the commit',
    from({ branch: 'main', onDemand: true }),
    from({ byCommit: true }),
    undefined
  ],
  [
    'the commit, then a client of a mirror',
    from({ byCommit: true }),
    from({ branch: 'main', onDemand: true }),
    undefined
  ],
  ['the commit, then a branch', from({ byCommit: true }), from({ follows: 'v1' }), 'v1'],
  ['an earlier version, then the commit', from({ branch: 'main' }), from({ byCommit: true }), 'main'],
  [
    'another commit of a branch, then this one',
    from({ revision: OTHER, follows: 'dev' }),
    from({ byCommit: true }),
    undefined
  ],
  ['from disk, then a branch', { kind: 'local' } as const, from({ follows: 'main' }), 'main']
])('what is followed after %s', (_, before, now, expected) => {
  expect(shownOrigin(mergedSource(before, now)).revision).toBe(expected)
})

test('only what came from the hub follows, and only a commit is shown as one', () => {
  expect(shownOrigin({ kind: 'catalog', repo: 'a/b', revision: 'main', branch: 'main' })).toEqual({
    kind: 'catalog',
    repo: 'a/b'
  })
})
