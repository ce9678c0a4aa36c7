import * as Type from 'typebox'

const MAX = Number.MAX_SAFE_INTEGER

/** An object with a name of its own, which is that of its component in openapi.json. */
export const named = <P extends Type.TProperties>(title: string, properties: P): Type.TObject<P> =>
  Type.Object(properties, { title })

export const text = (description: string): Type.TString => Type.String({ description })

export const flag = (description: string): Type.TBoolean => Type.Boolean({ description })

export const bytes = (description = 'bytes'): Type.TInteger => Type.Integer({ minimum: 0, maximum: MAX, description })

export const count = (description?: string): Type.TInteger =>
  Type.Integer({ minimum: 0, maximum: MAX, ...(description !== undefined && { description }) })

export const digest = (description = '`sha256:` and 64 lower-case hex characters'): Type.TString =>
  Type.String({ pattern: '^sha256:[0-9a-f]{64}$', description })

export const listOf = <T extends Type.TSchema>(items: T, description: string): Type.TArray<T> =>
  Type.Array(items, { description })
