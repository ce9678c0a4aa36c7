import { expect, test } from 'vitest'
import {
  DOORS,
  decided,
  mergedProvenance,
  PROVENANCE,
  type Provenance,
  verdictOf,
  type WithheldFact
} from '../src/provenance.ts'

const CLOSED = { seedRestricted: false }
const OPEN = { seedRestricted: true }
const AT = '2026-01-01T00:00:00.000Z'
const shared = { decision: decided('shared') }

const ROWS: readonly (readonly [Provenance | 'damaged' | undefined, WithheldFact | undefined])[] = [
  [undefined, 'no-record'],
  ['damaged', 'damaged-record'],
  [{ access: 'own' }, undefined],
  [{ access: 'public' }, undefined],
  [{ access: 'public', confirmedPublicAt: AT }, undefined],
  [{ access: 'own', decision: decided('private') }, 'private'],
  [{ access: 'restricted', decision: decided('private') }, 'private'],
  [{ access: 'own', ...shared }, undefined],
  [{ access: 'unknown' }, 'unknown-access'],
  [{ access: 'unknown', ...shared }, undefined],
  [{ access: 'public', unproven: ['m.gguf'] }, 'unproven'],
  [{ access: 'public', unproven: ['m.gguf'], ...shared }, undefined],
  [{ access: 'own', marked: true }, 'marked'],
  [{ access: 'own', marked: true, ...shared }, undefined],
  [{ access: 'restricted', by: 'hub-token' }, 'restricted'],
  [{ access: 'restricted', by: 'hub-token', ...shared }, 'restricted']
]

test.each(ROWS)('%j is withheld at every door because of: %s', (provenance, fact) => {
  const state = provenance === undefined || provenance === 'damaged' ? provenance : { provenance }
  for (const door of DOORS) {
    const verdict = verdictOf(state, door, CLOSED)
    expect([door, verdict.given ? undefined : verdict.fact]).toEqual([door, fact])
  }
})

test('seed_restricted opens the swarm and the webseed, and nothing else, for what a credential fetched', () => {
  const given = (provenance: Provenance): string[] =>
    DOORS.filter((door) => verdictOf({ provenance }, door, OPEN).given)
  expect(given({ access: 'restricted', by: 'webseed-key' })).toEqual(['swarm', 'webseed'])
  expect(given({ access: 'restricted', decision: decided('private') })).toEqual([])
  expect(given({ access: 'unknown' })).toEqual([])
})

test('another import of the same artifact: credentials apply until a source is public', () => {
  const restricted: Provenance = { access: 'restricted', by: 'hub-token' }
  const confirmed: Provenance = { access: 'public', confirmedPublicAt: AT }
  const latest = { isPinned: false, wasComplete: true }
  expect(mergedProvenance(restricted, confirmed, latest)).toEqual(confirmed)
  expect(mergedProvenance(confirmed, { access: 'public' }, latest)).toEqual(confirmed)
  expect(mergedProvenance(confirmed, restricted, latest)).toEqual(restricted)
  // an import that learns nothing
  expect(mergedProvenance(restricted, { access: 'unknown' }, latest)).toEqual(restricted)
  expect(mergedProvenance(confirmed, { access: 'unknown' }, latest)).toEqual(confirmed)
  expect(mergedProvenance({ access: 'own' }, { access: 'unknown' }, latest)).toEqual({ access: 'unknown' })
  for (const access of ['public', 'own'] as const)
    expect(mergedProvenance(restricted, { access, unproven: ['m.gguf'] }, latest)).toEqual(restricted)
})

test('a pinned import changes nothing, unless a key fetches blobs that were missing', () => {
  const key: Provenance = { access: 'restricted', by: 'webseed-key' }
  const own: Provenance = { access: 'public' }
  expect(mergedProvenance(own, key, { isPinned: true, wasComplete: true })).toEqual(own)
  expect(mergedProvenance(own, key, { isPinned: true, wasComplete: false })).toEqual(key)
  expect(mergedProvenance(key, own, { isPinned: true, wasComplete: false })).toEqual(key)
})

test('the owner’s decision and an exporter’s mark survive other imports', () => {
  const latest = { isPinned: false, wasComplete: true }
  const before: Provenance = { access: 'own', marked: true, decision: { is: 'private', at: AT } }
  expect(mergedProvenance(before, { access: 'public' }, latest)).toEqual({ ...before, access: 'public' })
  const now: Provenance = { access: 'own', decision: { is: 'private', at: AT } }
  expect(mergedProvenance({ access: 'own', ...shared }, now, latest)).toEqual(now)
})

test.each([
  {},
  { access: 'everybody' },
  { access: 'own', by: 'toString' },
  { access: 'own', marked: false },
  { access: 'own', unproven: [1] },
  { access: 'own', decision: { is: 'perhaps' } },
  { access: 'own', confirmedPublicAt: 5 },
  [],
  null
])('a record with the provenance %j is damaged', (value) => {
  expect(PROVENANCE(value, '"provenance"')).toMatch(/provenance/)
})
