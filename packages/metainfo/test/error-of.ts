import { MetainfoError } from '../src/errors.ts'

/** Runs `action` and gives `code reason` of the MetainfoError it throws; any other outcome fails the test. */
export function errorOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (error instanceof MetainfoError) return `${error.code} ${error.reason}`
    throw error
  }
  return 'no error'
}
