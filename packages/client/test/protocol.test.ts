import { readFileSync } from 'node:fs'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { openApiDocument, openApiText, withErrorTable } from '../scripts/openapi.ts'
import { ERROR_CODES, errorStatus, type ImportHfBody, isTerminal, PATHS, ROUTES, type Route } from '../src/protocol.ts'

const docs = new URL('../../../docs/', import.meta.url)
const routes = Object.entries(ROUTES as Record<string, Route>)

describe('error table', () => {
  it('has a status for every code, and 500 for codes of jobs only', () => {
    expect(errorStatus('E_LENGTH')).toBe(400)
    expect(errorStatus('E_RANGE_INVALID')).toBe(416)
    expect(errorStatus('E_VERIFY_FAILED')).toBe(500)
    for (const code of Object.keys(ERROR_CODES)) expect(code).toMatch(/^E_[A-Z_]+$/)
  })

  // copied by hand from spec err.2: the table must not drift from the document.
  it.each([
    ['E_UNSUPPORTED_VERSION', 400],
    ['E_NOT_FOUND', 404],
    ['E_BAD_REQUEST', 400],
    ['E_PARSE', 400],
    ['E_LENGTH', 400],
    ['E_UNKNOWN_REF', 404],
    ['E_AMBIGUOUS_SELECTOR', 400],
    ['E_NO_INDEX', 404],
    ['E_INVALID_INDEX', 500],
    ['E_NO_MEMBER', 400],
    ['E_PIN_MISMATCH', 400],
    ['E_RANGE_INVALID', 416],
    ['E_SOURCE_NOT_REGULAR', 400],
    ['E_SOURCE_FORBIDDEN', 502],
    ['E_SOURCE_UNAVAILABLE', 502],
    ['E_RATE_LIMITED', 502],
    ['E_NOT_IMPORTABLE', 'job'],
    ['E_NOT_IMPLEMENTED', 501],
    ['E_NOT_ANCHORED', 422],
    ['E_VERIFY_FAILED', 'job'],
    ['E_INTERNAL', 500],
    ['E_METHOD_NOT_ALLOWED', 405],
    ['E_TOO_LARGE', 413],
    ['E_CORRUPTION', 500],
    ['E_NO_SPACE', 'job']
  ] as const)('%s is %s', (code, status) => {
    expect(ERROR_CODES[code].status).toBe(status)
  })

  it('is the table of docs/errors.md', () => {
    const page = readFileSync(new URL('errors.md', docs), 'utf8')
    expect(page).toBe(withErrorTable(page))
  })
})

describe('routes', () => {
  it('have distinct method and path, under v1', () => {
    const all = routes.map(([, { method, path }]) => `${method} ${path}`)
    expect(new Set(all).size).toBe(all.length)
    for (const line of all) expect(line).toMatch(/^(GET|HEAD|POST|PUT|DELETE) \/v1\/[-a-z/{}]+$/)
    expect(Object.keys(ROUTES).sort()).toEqual(Object.keys(PATHS).sort())
  })

  it.each(routes)('%s: its errors are in the table, and only routes with a body have one', (_id, route) => {
    for (const code of [...Object.keys(route.errors), ...(route.jobErrors ?? [])])
      expect(ERROR_CODES).toHaveProperty(code)
    for (const status of Object.values(route.errors).flat()) expect(status).toBeGreaterThanOrEqual(400)
    if (route.method === 'POST') expect(route.body).toBeDefined()
    if (route.method === 'GET' || route.method === 'HEAD') expect(route.body).toBeUndefined()
  })

  it('refuse wrong types, and ignore unknown fields', () => {
    const body = Compile(ROUTES.importHf.body)
    expect(body.Check({ repo: 'org/name', revision: 'main' })).toBe(true)
    expect(body.Check({ repo: 'org/name', later: 1 })).toBe(true)
    expect(body.Check({ repo: 7 })).toBe(false)
    expect(body.Check({ revision: 'main' })).toBe(false)
    // @ts-expect-error the static types do not have unknown fields
    const typed: ImportHfBody = { repo: 'org/name', later: 1 }
    expect(body.Check(typed)).toBe(true)
  })

  it('job states', () => {
    expect((['waiting', 'fetching', 'done', 'failed'] as const).map((state) => isTerminal({ state }))).toEqual([
      false,
      false,
      true,
      true
    ])
  })
})

describe('OpenAPI document', () => {
  it('docs/openapi.json is up to date', () => {
    expect(readFileSync(new URL('openapi.json', docs), 'utf8')).toBe(openApiText())
  })

  it('refers only to components that it has', () => {
    const document = openApiDocument() as { components: { schemas: Record<string, unknown> } }
    const refs = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([A-Za-z]+)"/g)].map(
      (match) => match[1]!
    )
    expect(refs.length).toBeGreaterThan(20)
    for (const name of refs) expect(document.components.schemas).toHaveProperty(name)
  })
})
