import type { Session } from './session.ts'

/** A person wonders after so long. */
const SILENCE_MS = 2_000

/** Waits for an answer, and says what it waits for when that takes long. */
export async function sayingWhatWaits<T>({ note }: Session, what: string, answer: Promise<T>): Promise<T> {
  const timer = setTimeout(() => note(`${what} …`), SILENCE_MS)
  try {
    return await answer
  } finally {
    clearTimeout(timer)
  }
}
