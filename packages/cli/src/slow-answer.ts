import type { Session } from './session.ts'

/** After this time a person should be told what we wait for. */
const SILENCE_MS = 2_000

/** Waits for an answer, and prints what it waits for if that takes long. */
export async function sayingWhatWaits<T>({ note }: Session, what: string, answer: Promise<T>): Promise<T> {
  const timer = setTimeout(() => note(`${what} …`), SILENCE_MS)
  try {
    return await answer
  } finally {
    clearTimeout(timer)
  }
}
