import { isDigest, type Sha256Digest } from '@svc/ref'
import { ManifestError, type ManifestErrorCode, type ManifestErrorReason } from './errors.ts'

export type PlainObject = { readonly [key: string]: unknown }

const isPlainObject = (value: unknown): value is PlainObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Typed access to the fields of one document. `code` is that of the errors: it says whether the document was read or is
 * to be sealed.
 */
export class FieldReader {
  readonly code: ManifestErrorCode
  constructor(code: ManifestErrorCode) {
    this.code = code
  }

  fail(reason: ManifestErrorReason, message: string, details: Readonly<Record<string, unknown>> = {}): never {
    throw new ManifestError(this.code, reason, message, { details })
  }

  #wrong(field: string, expected: string): never {
    this.fail('field', `${field} must be ${expected}`, { field })
  }

  object(value: unknown, field: string): PlainObject {
    return isPlainObject(value) ? value : this.#wrong(field, 'an object')
  }

  array(value: unknown, field: string): readonly unknown[] {
    return Array.isArray(value) ? value : this.#wrong(field, 'an array')
  }

  text(value: unknown, field: string): string {
    return typeof value === 'string' && value !== '' ? value : this.#wrong(field, 'a string that is not empty')
  }

  count(value: unknown, field: string): number {
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
      ? value
      : this.#wrong(field, 'an integer of at least 0')
  }

  digest(value: unknown, field: string): Sha256Digest {
    return isDigest(value) ? value : this.#wrong(field, '"sha256:" and 64 lower-case hex characters')
  }

  constant(value: unknown, field: string, expected: string | number): void {
    if (value !== expected) this.#wrong(field, JSON.stringify(expected))
  }
}
