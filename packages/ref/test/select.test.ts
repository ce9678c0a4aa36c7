import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatRepoId, parseRef, type SelectorRef, selectIndex, selectMember } from '../src/index.ts'
import { errorOf, quant } from './arbitraries.ts'
import { vectors } from './vectors.ts'

const { members, rows } = vectors.select

describe('vectors/ref.json', () => {
  test.each(rows)('select: $name', ({ member, error, ...selector }) => {
    if (error === undefined) {
      expect(selectMember(members, selector).quant).toBe(member)
      if (selector.digest === undefined) expect(selectMember(members, selector.quant).quant).toBe(member)
    } else {
      expect(errorOf(() => selectMember(members, selector))).toMatchObject(error)
    }
  })
})

describe('vectors/ref.json', () => {
  const repos = new Map(
    vectors.resolve.repos.map(({ repo, current, tags }) => [repo, { current, tags: new Map(Object.entries(tags)) }])
  )

  test.each(vectors.resolve.rows)('resolve: $ref', ({ ref, quant: expected, error }) => {
    const resolve = () => {
      const parsed = parseRef(ref)
      const quants = selectIndex(repos.get(formatRepoId(parsed)) ?? {}, parsed)
      return selectMember(
        quants.map((each) => ({ quant: each })),
        parsed as SelectorRef
      ).quant
    }
    if (error === undefined) expect(resolve()).toBe(expected)
    else expect(errorOf(resolve)).toMatchObject(error)
  })
})

test('a reference is a selector', () => {
  expect(selectMember(members, parseRef('svc:///a/b:q8') as SelectorRef).quant).toBe('q8_0')
})

test('a pin on a member of unknown digest fails closed', () => {
  const digest = members[0]?.manifest
  if (digest === undefined) throw new Error('the table has no member')
  expect(errorOf(() => selectMember([{ quant: 'raw' }], { quant: 'raw', digest })).code).toBe('E_PIN_MISMATCH')
})

test('a message stays short however many candidates there are', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => ({ quant: `q${index}` }))
  const error = errorOf(() => selectMember(many, 'q'))
  expect(error.candidates).toHaveLength(10_000)
  expect(error.message.length).toBeLessThan(200)
})

test('an index without members', () => {
  expect(errorOf(() => selectMember([], 'raw'))).toMatchObject({ code: 'E_NO_MEMBER', candidates: [] })
})

test('order of the members does not matter, and the model agrees', () => {
  fc.assert(
    fc.property(fc.uniqueArray(quant, { minLength: 1, maxLength: 8 }), quant, fc.nat(24), (quants, any, cut) => {
      const wanted = cut === 0 ? any : (quants[0] as string).slice(0, cut)
      const matching = quants.filter((each) => each.startsWith(wanted)).sort()
      const run = (list: string[]) => {
        try {
          return selectMember(
            list.map((each) => ({ quant: each })),
            wanted
          ).quant
        } catch {
          return errorOf(() =>
            selectMember(
              list.map((each) => ({ quant: each })),
              wanted
            )
          )
        }
      }
      for (const list of [quants, quants.toReversed()]) {
        const result = run(list)
        if (quants.includes(wanted)) expect(result).toBe(wanted)
        else if (matching.length === 1) expect(result).toBe(matching[0])
        else if (matching.length > 1)
          expect(result).toMatchObject({ code: 'E_AMBIGUOUS_SELECTOR', candidates: matching })
        else expect(result).toMatchObject({ code: 'E_NO_MEMBER', candidates: quants.toSorted() })
      }
    })
  )
})

describe('snapshots', () => {
  const repo = {
    current: 'now',
    tags: new Map([
      ['v2', 'then'],
      ['V1', 'before']
    ])
  }

  test('a tag selects its snapshot, no tag the current index', () => {
    expect(selectIndex(repo, parseRef('svc:///a/b:raw'))).toBe('now')
    expect(selectIndex(repo, parseRef('svc:///a/b:v2+raw'))).toBe('then')
  })

  test("tags are looked up verbatim, and the repository's own are the candidates", () => {
    const expected = {
      code: 'E_UNKNOWN_REF',
      reason: 'unknown-tag',
      candidates: ['V1', 'v2'],
      repo: { ns: 'a', name: 'b' }
    }
    expect(errorOf(() => selectIndex(repo, parseRef('svc:///a/b:v1+raw')))).toMatchObject(expected)
    expect(errorOf(() => selectIndex({ current: 'now' }, parseRef('svc:///a/b:v1+raw')))).toMatchObject({
      code: 'E_UNKNOWN_REF',
      candidates: []
    })
  })

  test('a repository without an index', () => {
    expect(errorOf(() => selectIndex({ tags: repo.tags }, parseRef('svc:///a/b:raw')))).toMatchObject({
      code: 'E_UNKNOWN_REF',
      reason: 'unknown-repo'
    })
    expect(selectIndex({ tags: repo.tags }, parseRef('svc:///a/b:v2+raw'))).toBe('then')
  })
})
