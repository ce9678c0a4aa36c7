import type { Session } from './session.ts'

/** After this time it says what it waits for. */
const SILENCE_MS = 2_000

/** Waits for an answer, and prints what it waits for if that takes long. */
export async function sayingWhatWaits<T>({ clock, note }: Session, what: string, answer: Promise<T>): Promise<T> {
  const timer = clock.after(SILENCE_MS, () => note(`${what} …`))
  try {
    return await answer
  } finally {
    timer.cancel()
  }
}
