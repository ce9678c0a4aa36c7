import { ERROR_CODES, ErrorEnvelopeSchema, ROUTES, type Route } from '../src/protocol.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type JsonObject = { [key: string]: Json }

const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json

/** The OpenAPI 3.1 document of the management API, from the same schemas that the daemon checks requests with. */
export function openApiDocument(): JsonObject {
  const schemas: JsonObject = {}

  /** Schemas with a title become components, once. */
  const place = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(place)
    if (typeof value !== 'object' || value === null) return value
    const { title, ...rest } = value
    const placed = Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, place(inner)]))
    if (typeof title !== 'string') return placed
    schemas[title] = placed
    return { $ref: `#/components/schemas/${title}` }
  }
  const schemaOf = (schema: unknown): Json => place(plain(schema))
  const json = (schema: unknown): JsonObject => ({ 'application/json': { schema: schemaOf(schema) } })

  const parametersOf = (schema: unknown, where: 'path' | 'query'): Json[] => {
    const object = plain(schema) as { properties: JsonObject; required?: string[] }
    return Object.entries(object.properties).map(([name, inner]) => ({
      name,
      in: where,
      required: object.required?.includes(name) === true,
      schema: place(inner)
    }))
  }

  const errorResponses = (route: Route): JsonObject => {
    const byStatus = new Map<number, string[]>()
    for (const [code, statuses] of Object.entries(route.errors)) {
      for (const status of [statuses].flat()) byStatus.set(status, [...(byStatus.get(status) ?? []), code])
    }
    return Object.fromEntries(
      [...byStatus]
        .sort(([a], [b]) => a - b)
        .map(([status, codes]) => [
          `${status}`,
          {
            description: codes.join(', '),
            ...(route.method !== 'HEAD' && { content: json(ErrorEnvelopeSchema) })
          }
        ])
    )
  }

  const bytes: JsonObject = { 'application/octet-stream': { schema: { type: 'string', contentEncoding: 'binary' } } }
  const success = (route: Route): JsonObject => {
    if (route.response !== undefined) {
      return { [`${route.status}`]: { description: 'success', content: json(route.response) } }
    }
    if (route.method === 'HEAD') return { '200': { description: 'the headers of the full blob' } }
    return {
      '200': { description: 'the whole blob', content: bytes },
      '206': { description: 'one range', content: bytes }
    }
  }

  const paths: JsonObject = {}
  for (const [id, entry] of Object.entries(ROUTES)) {
    const route: Route = entry
    const parameters = [
      ...(route.params === undefined ? [] : parametersOf(route.params, 'path')),
      ...(route.query === undefined ? [] : parametersOf(route.query, 'query')),
      ...(id === 'blob' ? [{ name: 'Range', in: 'header', required: false, schema: { type: 'string' } }] : [])
    ]
    const jobCodes = route.jobErrors ?? []
    const operation: JsonObject = {
      operationId: id,
      summary: route.summary,
      ...(jobCodes.length > 0 && { description: `The job can fail with: ${jobCodes.join(', ')}.` }),
      ...(route.additive && { 'x-additive': true }),
      ...(parameters.length > 0 && { parameters }),
      ...(route.body !== undefined && { requestBody: { required: true, content: json(route.body) } }),
      responses: {
        ...success(route),
        ...errorResponses(route),
        default: {
          description: 'any other error, with the same envelope',
          ...(route.method !== 'HEAD' && { content: json(ErrorEnvelopeSchema) })
        }
      }
    }
    paths[route.path] = { ...(paths[route.path] as JsonObject | undefined), [route.method.toLowerCase()]: operation }
  }

  return {
    openapi: '3.1.0',
    info: {
      title: 'svc management API',
      version: '1',
      description:
        'HTTP/1.1 over a Unix domain socket with mode 0600. Paths marked `x-additive` are not part of the documented API v1.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' }
    },
    servers: [{ url: 'http://svc', description: "the daemon's Unix socket; the host name is a dummy" }],
    paths,
    components: { schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))) },
    'x-error-codes': plain(ERROR_CODES)
  }
}

/** The file's text. */
export const openApiText = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`

/** The table of docs/errors.md, its columns padded as the formatter leaves them. */
export function errorTable(): string {
  const rows = Object.entries(ERROR_CODES).map(([code, { status, description }]) => [
    `\`${code}\``,
    status === 'job' ? 'job only' : String(status),
    description
  ])
  const table = [['Code', 'HTTP status', 'Given when'], ['', '', ''], ...rows]
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]!.length)))
  return table
    .map((row, i) => row.map((cell, column) => cell.padEnd(widths[column]!, i === 1 ? '-' : ' ')).join(' | '))
    .map((row) => `| ${row} |`)
    .join('\n')
}

const BEGIN = '<!-- begin: table of ERROR_CODES -->'
const END = '<!-- end -->'

/** docs/errors.md with its table put in anew. */
export function withErrorTable(page: string): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/errors.md lacks ${BEGIN} … ${END}`)
  return `${before}${BEGIN}\n${errorTable()}\n${END}${after}`
}
