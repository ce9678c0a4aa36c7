// Python source from the OpenAPI document: a dataclass for each answer, and a method for each route that answers with JSON.

/** The part of JSON Schema that docs/openapi.json uses. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly description?: string
}

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Error codes with what they say, as in docs/errors.md. */
export type ErrorTable = Readonly<Record<string, { readonly description: string }>>

const KEYWORDS = new Set(['as', 'from', 'import', 'global', 'in', 'is', 'class', 'def', 'pass', 'with'])
const SCALARS: Readonly<Record<string, string>> = { integer: 'int', number: 'float', string: 'str', boolean: 'bool' }
/** What the API says of many fields is said once, of a type. */
const MEANINGS: Readonly<Record<string, readonly [name: string, type: string, meaning: string]>> = {
  bytes: ['Bytes', 'int', 'A number of bytes.'],
  '`sha256:` and 64 lower-case hex characters': ['Digest', 'str', '`sha256:` and 64 lower-case hex characters.'],
  'UTC, RFC 3339, with fractional seconds': ['Timestamp', 'str', 'UTC, RFC 3339, with fractional seconds.']
}
const WIDTH = 100

/** `_json.wire` is the other way. */
function snakeCase(name: string): string {
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const back = snake.replaceAll(/_[a-z]/g, ([, letter]) => letter!.toUpperCase())
  if (back !== name) throw new Error(`${name} has no name in Python that leads back to it`)
  return KEYWORDS.has(snake) ? `${snake}_` : snake
}

const capitalized = (name: string): string => name[0]!.toUpperCase() + name.slice(1)
const quoted = (text: string): string => JSON.stringify(text)

/** Words in lines, all indented by so many spaces. */
function wrapped(words: readonly string[], indent: number): string[] {
  const margin = ' '.repeat(indent)
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > WIDTH) lines.push(margin + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Text as a docstring, wrapped. */
function docstring(text: string, indent: number): string[] {
  const words = text.replaceAll('\\', '\\\\').replaceAll('"""', "'''").split(/\s+/)
  const margin = ' '.repeat(indent)
  const line = `${margin}"""${words.join(' ')}"""`
  if (line.length <= WIDTH) return [line]
  return [...wrapped([`"""${words[0]}`, ...words.slice(1)], indent), `${margin}"""`]
}

class Generator {
  readonly #api: OpenApi
  readonly #aliases: string[] = []
  /** Dataclasses by name, each after those that it is made of. */
  readonly #classes = new Map<string, string[]>()

  constructor(api: OpenApi) {
    this.#api = api
  }

  /** The annotation of a schema's values. An object without a name of its own is called `name`. */
  #typeOf(schema: Schema, name: string): string {
    if (schema.$ref !== undefined) return this.#named(schema.$ref.split('/').at(-1)!)
    if (schema.enum !== undefined && schema.type === undefined) return `Literal[${schema.enum.map(quoted).join(', ')}]`
    if (schema.anyOf !== undefined)
      return [...new Set(schema.anyOf.map((option, i) => this.#typeOf(option, `${name}${i}`)))].join(' | ')
    if (schema.type === 'array') return `list[${this.#typeOf(schema.items!, name.replace(/s$/, ''))}]`
    if (schema.type === 'object') return schema.properties === undefined ? 'dict[str, Any]' : this.#class(name, schema)
    const [meaning, of] = MEANINGS[schema.description ?? ''] ?? []
    if (of !== undefined && SCALARS[schema.type ?? ''] === of) return meaning!
    const scalar = SCALARS[schema.type ?? '']
    if (scalar === undefined) throw new Error(`no type in Python for ${name}: ${JSON.stringify(schema)}`)
    return scalar
  }

  #named(name: string): string {
    const schema = this.#api.components.schemas[name]
    if (schema === undefined) throw new Error(`no schema ${name}`)
    if (schema.type === 'object') return this.#class(name, schema)
    const alias = `${name}: TypeAlias = ${this.#typeOf(schema, name)}`
    if (!this.#aliases.includes(alias)) this.#aliases.push(alias)
    return name
  }

  #class(name: string, { properties = {}, required = [], description }: Schema): string {
    if (this.#classes.has(name)) return name
    const lines = ['@dataclass(frozen=True, kw_only=True)', `class ${name}:`]
    if (description !== undefined) lines.push(...docstring(description, 4), '')
    for (const [key, schema] of Object.entries(properties)) {
      const type = this.#typeOf(schema, name + capitalized(key))
      lines.push(`    ${snakeCase(key)}: ${type}${required.includes(key) ? '' : ' | None = None'}`)
      if (schema.description !== undefined && MEANINGS[schema.description]?.[0] !== type)
        lines.push(...docstring(schema.description, 4))
    }
    if (lines.length === 2) lines.push('    pass')
    this.#classes.set(name, lines)
    return name
  }

  #method(path: string, verb: string, operation: Operation): string[] {
    const { operationId, summary = '', description, parameters = [], requestBody, responses } = operation
    const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
    const answer = success?.content?.['application/json']?.schema
    if (answer === undefined) return []
    const result = this.#typeOf(answer, `${capitalized(operationId)}Result`)
    const body = requestBody?.content['application/json']?.schema
    const { properties = {}, required = [] } =
      (body?.$ref && this.#api.components.schemas[body.$ref.split('/').at(-1)!]) || body || {}
    const positional = parameters.filter(({ required }) => required).map(({ name }) => `${snakeCase(name)}: str`)
    const optional = parameters
      .filter(({ required }) => !required)
      .map(({ name }) => `${snakeCase(name)}: str | None = None`)
    const fields = Object.entries(properties).map(([key, schema]) => ({
      key,
      isRequired: required.includes(key),
      type: this.#typeOf(schema, capitalized(operationId) + capitalized(key))
    }))
    // one required field reads well without its name, as in ensure("ns/name:quant")
    const first = fields.filter(({ isRequired }) => isRequired)
    const lone = first.length === 1 && positional.length === 0 ? first[0] : undefined
    if (lone !== undefined) positional.push(`${snakeCase(lone.key)}: ${lone.type}`)
    const named = [
      ...optional,
      ...fields
        .filter((one) => one !== lone)
        .map(({ key, type, isRequired }) => `${snakeCase(key)}: ${type}${isRequired ? '' : ' | None = None'}`)
    ]
    const asked = ['self', ...positional, ...(named.length > 0 ? ['*', ...named] : [])].join(', ')
    const line = `    def ${snakeCase(operationId)}(${asked}) -> ${result}:`
    // where it is not as `_call` has it
    const hasBody = body !== undefined
    const odd = hasBody === ['post', 'put'].includes(verb) ? '' : `, has_body=${capitalized(String(hasBody))}`
    return [
      ...(line.length <= WIDTH
        ? [line]
        : [`    def ${snakeCase(operationId)}(`, ...wrapped(asked.split(/(?<=,) /), 8), `    ) -> ${result}:`]),
      ...docstring([`${summary}.`, description].filter(Boolean).join(' '), 8),
      `        return self._call("${verb.toUpperCase()} ${path}", ${result}, locals()${odd})`,
      ''
    ]
  }

  run(): string {
    const methods = Object.entries(this.#api.paths).flatMap(([path, verbs]) =>
      Object.entries(verbs).flatMap(([verb, operation]) => this.#method(path, verb, operation))
    )
    return [
      '"""What the API answers, and a method for each of its routes.',
      '',
      'Made from docs/openapi.json by scripts/python.ts. Do not edit.',
      '"""',
      '',
      'from __future__ import annotations',
      '',
      'from dataclasses import dataclass',
      'from typing import Any, Literal, TypeAlias, TypeVar',
      '',
      '__all__ = [',
      ...wrapped(
        [
          ...this.#aliases.map((alias) => alias.split(':')[0]!),
          ...MEANT.map(([name]) => name),
          ...this.#classes.keys(),
          'Routes'
        ]
          .toSorted()
          .map((name) => `${quoted(name)},`),
        4
      ),
      ']',
      '',
      'T = TypeVar("T")',
      '',
      ...MEANT.flatMap(([name, type, meaning]) => [`${name}: TypeAlias = ${type}`, `"""${meaning}"""`]),
      ...this.#aliases,
      '',
      ...[...this.#classes.values()].flatMap((lines) => ['', ...lines, '']),
      '',
      'class Routes:',
      '    """The routes of the API that answer with JSON."""',
      '',
      '    def _call(',
      '        self, route: str, result: type[T], asked: dict[str, Any], has_body: bool | None = None',
      '    ) -> T:',
      '        raise NotImplementedError',
      '',
      ...methods
    ]
      .join('\n')
      .replace(/\n*$/, '\n')
  }
}

const MEANT = Object.values(MEANINGS)

/** The module `_api.py`. */
export const pythonApi = (api: OpenApi): string => new Generator(api).run()

/** The module `_aio_api.py`, from the text of `_api.py`: the same methods, to be awaited. */
export function pythonAioApi(text: string): string {
  const routes = text.slice(text.indexOf('class Routes:'))
  const awaited = routes
    .replace('class Routes:', 'class AsyncRoutes:')
    .replaceAll('    def ', '    async def ')
    .replaceAll('return self._call(', 'return await self._call(')
  return [
    '"""A coroutine for each route of the API.',
    '',
    'Made from docs/openapi.json by scripts/python.ts. Do not edit.',
    '"""',
    '',
    'from __future__ import annotations',
    '',
    'from typing import Any, Literal, TypeVar',
    '',
    'from ._api import *  # noqa: F403',
    '',
    'T = TypeVar("T")',
    '',
    '',
    awaited
  ].join('\n')
}

/** `E_NO_SPACE` is `NoSpace`. */
const className = (code: string): string => code.slice('E_'.length).toLowerCase().split('_').map(capitalized).join('')

/** The module `_codes.py`: an exception for each error code of the daemon. */
export function pythonErrors(codes: ErrorTable): string {
  const classes = Object.entries(codes).flatMap(([code, { description }]) => [
    '',
    '',
    `class ${className(code)}(SvcError):`,
    ...docstring(description, 4)
  ])
  return [
    '"""An exception for each error code of the daemon.',
    '',
    'Made from the table of error codes by scripts/python.ts. Do not edit.',
    '"""',
    '',
    'from ._error import SvcError',
    ...classes,
    '',
    '',
    'BY_CODE: dict[str, type[SvcError]] = {',
    ...Object.keys(codes).map((code) => `    ${quoted(code)}: ${className(code)},`),
    '}',
    ''
  ].join('\n')
}
