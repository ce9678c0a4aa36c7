import { Lazy } from '@svc/internal-concurrency'
import type { Static, TObject } from 'typebox'
import { DaemonError } from '../errors.ts'
import { parseJsonBody } from './json.ts'
import type { SchemaProblem } from './schema-problems.ts'

/** Loaded lazily: a sixth of the code of a start, needed only for requests with a body. */
const validator = new Lazy(() => import('./schema-problems.ts'))

/**
 * Validates a request body. @returns the known fields, and the names of others (ignored and logged, spec http.7).
 * @throws DaemonError `E_BAD_REQUEST` naming the field
 */
export async function readJsonBody<S extends TObject>(
  schema: S,
  bytes: Uint8Array | undefined
): Promise<{ readonly body: Static<S>; readonly unknown: readonly string[] }> {
  if (bytes === undefined || bytes.length === 0) {
    throw new DaemonError('E_BAD_REQUEST', `the body is missing; send a JSON object with ${fieldList(schema)}`)
  }
  const object = parseJsonBody(bytes)
  const known: Record<string, unknown> = {}
  const unknown: string[] = []
  for (const [key, value] of Object.entries(object)) {
    if (Object.hasOwn(schema.properties, key)) known[key] = value
    else unknown.push(key)
  }
  const problem = (await validator.get()).schemaProblem(schema, known)
  if (problem !== undefined) throw new DaemonError('E_BAD_REQUEST', messageOf(problem, schema))
  return { body: known as Static<S>, unknown }
}

function messageOf(problem: SchemaProblem, schema: TObject): string {
  if (problem.keyword === 'required') {
    const { requiredProperties = [] } = problem.params as { requiredProperties?: readonly string[] }
    const names = requiredProperties.map((name) => `"${name}"`).join(', ')
    return `the field ${names} is missing; the body has ${fieldList(schema)}`
  }
  const field = problem.instancePath.slice(1).replaceAll('/', '.')
  return `the field "${field}" ${problem.message}`
}

const fieldList = (schema: TObject): string =>
  Object.keys(schema.properties)
    .map((name) => `"${name}"${schema.required?.includes(name) === true ? '' : ' (optional)'}`)
    .join(', ')
