import { expect, test } from 'vitest'
import { CodedError, deserializeError, ReasonedError, serializeError } from '../src/index.ts'

class StoreError extends CodedError<'E_IO', { readonly path?: string }> {
  override readonly name = 'StoreError'
}
class FormatError extends ReasonedError<'E_FORMAT', 'too-long'> {
  override readonly name = 'FormatError'
}
const cross = (error: unknown): Error =>
  deserializeError(structuredClone(serializeError(error)), { StoreError, FormatError })

test('an error of a known class crosses a thread as one of that class, with its cause', () => {
  const system = Object.assign(new Error('no room'), { code: 'ENOSPC', errno: -28, syscall: 'write' })
  const error = new StoreError('E_IO', 'cannot write', { path: '/x' }, system)
  const other = cross(error)
  expect(other).toBeInstanceOf(StoreError)
  expect(other).toMatchObject({ name: 'StoreError', message: 'cannot write', code: 'E_IO', details: { path: '/x' } })
  expect(other.cause).toMatchObject({ message: 'no room', code: 'ENOSPC', errno: -28, syscall: 'write' })
  expect(other.stack).toBe(error.stack)
  const reasoned = cross(new FormatError('E_FORMAT', 'too-long', 'too long', { details: { length: 3 } }))
  expect(reasoned).toBeInstanceOf(FormatError)
  expect(reasoned).toMatchObject({ code: 'E_FORMAT', reason: 'too-long', details: { length: 3 } })
  expect(reasoned.cause).toBe(undefined)
})

test('any other error is a plain one with its name and fields, and whatever else is thrown has its text', () => {
  const other = cross(new RangeError('out of it'))
  expect(other).not.toBeInstanceOf(RangeError)
  expect(other).toMatchObject({ name: 'RangeError', message: 'out of it' })
  expect(cross('words').message).toBe('words')
  expect(cross(undefined).message).toBe('undefined')
})

test('an endless chain of causes is cut', () => {
  const error = new Error('a')
  error.cause = error
  let depth = 0
  for (let at: unknown = cross(error); at instanceof Error; at = at.cause) depth++
  expect(depth).toBe(5)
})
