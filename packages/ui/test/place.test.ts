import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatPlace, parsePlace } from '../src/place.ts'

test.each([
  ['', { view: 'models' }],
  ['#nosuch', { view: 'models' }],
  ['#models/acme/m0:q8_0', { view: 'models', model: 'acme/m0:q8_0' }],
  ['#models/acme/%zz', { view: 'models', model: 'acme/%zz' }],
  ['#get?text=two+words', { view: 'get', text: 'two words' }],
  ['#get?repo=Acme%2FM1&text=m', { view: 'get', repo: 'Acme/M1', text: 'm' }],
  ['#jobs?text=no', { view: 'jobs' }]
] as const)('%s is a place', (hash, place) => {
  expect(parsePlace(hash)).toEqual(place)
})

test('a place is its address again', () => {
  const text = fc.string({ minLength: 1, unit: 'grapheme' })
  fc.assert(
    fc.property(text, text, (text, repo) => {
      expect(parsePlace(formatPlace({ view: 'get', text, repo }))).toEqual({ view: 'get', text, repo })
      expect(parsePlace(formatPlace({ view: 'models', model: `acme/${text}` }))).toEqual({
        view: 'models',
        model: `acme/${text}`
      })
    })
  )
  expect(formatPlace({ view: 'models', model: 'acme/m0:q8_0' })).toBe('#models/acme/m0:q8_0')
})
