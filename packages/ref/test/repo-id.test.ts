import { expect, test } from 'vitest'
import { formatRepoId, isReservedNamespace, parseRepoId, tryParseRepoId } from '../src/index.ts'
import { errorOf } from './arbitraries.ts'
import { vectors } from './vectors.ts'

test.each(vectors.repoIds)('repo id $input', ({ input, id, reserved, error, folded }) => {
  expect(tryParseRepoId(input)).toEqual(id)
  if (id !== undefined) {
    expect(parseRepoId(input)).toEqual(id)
    expect(formatRepoId(id)).toBe(input)
    expect(isReservedNamespace(id.ns)).toBe(reserved === true)
    return
  }
  expect(errorOf(() => parseRepoId(input))).toMatchObject({ reason: error, suggestion: folded })
  if (folded === undefined) expect(errorOf(() => parseRepoId(input, { foldCase: true })).reason).toBe(error)
  else expect(formatRepoId(parseRepoId(input, { foldCase: true }))).toBe(folded)
})

test('reserved names are refused, ignoring case', () => {
  expect(isReservedNamespace('Library')).toBe(true)
  expect(isReservedNamespace('SVC')).toBe(true)
  expect(isReservedNamespace('libraries')).toBe(false)
})

test('format refuses what parse would not give', () => {
  expect(errorOf(() => formatRepoId({ ns: 'Acme', name: 'tiny' })).reason).toBe('namespace')
  expect(errorOf(() => formatRepoId({ ns: 'acme', name: 'a/b' })).reason).toBe('name')
})
