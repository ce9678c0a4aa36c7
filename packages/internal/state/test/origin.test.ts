import { digestFromBytes } from '@svc/ref'
import { expect, test } from 'vitest'
import { type ArtifactSource, mergedFollowed, mergedSource, shownOrigin, upstreamName } from '../src/origin.ts'

const from = (more: Partial<ArtifactSource>): ArtifactSource => ({
  kind: 'hf',
  repo: 'Acme/M',
  revision: 'a'.repeat(40),
  ...more
})
const under = (follows: string, name = 'me/m'): ArtifactSource => from({ followed: { [name]: follows } })
const stranger = from({ branch: 'main', onDemand: true })

test.each([
  ['a branch, then the commit', under('dev'), under(''), undefined],
  ['a branch, then a client of a mirror', under('dev'), stranger, 'dev'],
  ['a branch, then the commit under another name', under('dev'), under('', 'me/pinned'), 'dev'],
  ['the commit, then a branch under another name', under(''), under('main', 'me/other'), undefined],
  ['a client of a mirror, then the commit', stranger, under(''), undefined],
  ['the commit, then a client of a mirror', under(''), stranger, undefined],
  ['the commit, then a branch', under(''), under('v1'), 'v1'],
  ['an earlier version', from({ branch: 'main' }), from({ branch: 'main' }), 'main'],
  ['an earlier version, then the commit', from({ branch: 'main' }), under(''), undefined],
  ['from disk, then a branch', { kind: 'local' } as const, under('main'), 'main'],
  ['a branch, then an archive', under('main'), { kind: 'oci' } as const, 'main'],
  ['a branch, then the catalog', under('main'), from({ kind: 'catalog' }), 'main']
])('what a name follows after %s', (_, before, now, expected) => {
  const after = { ...mergedSource(before, now), ...mergedFollowed(before, now) }
  expect(shownOrigin(after, 'me/m').revision).toBe(expected)
})

test('a file has its name at the source, whatever it is called', () => {
  const source = from({ names: { 'm-q4_0.gguf': 'M.Q4_0.gguf' } })
  expect(['m-q4_0.gguf', 'constructor'].map((name) => upstreamName(source, name))).toEqual([
    'M.Q4_0.gguf',
    'constructor'
  ])
})

test('the hub stays the source after other imports, without the companions that those bring', () => {
  const archive = { kind: 'oci', companions: digestFromBytes(Buffer.alloc(32)) } as const
  expect(mergedSource(from({ branch: 'main' }), archive)).toEqual(from({ branch: 'main' }))
  expect(mergedSource(stranger, archive)).toEqual(from({ branch: 'main' }))
  // it cannot be fetched from there
  expect(mergedSource({ kind: 'hf', repo: 'Acme/M', revision: 'main' }, archive)).toEqual(archive)
  expect(mergedSource(archive, from({}))).toEqual(from({}))
})

test('only imports from the hub follow a branch, and only a commit is shown as one', () => {
  expect(shownOrigin({ kind: 'catalog', repo: 'a/b', revision: 'main', branch: 'main' }, 'a/b')).toEqual({
    kind: 'catalog',
    repo: 'a/b'
  })
})
