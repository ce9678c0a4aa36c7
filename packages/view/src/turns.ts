import { KeyedLock } from '@svc/internal-concurrency'

const places = new KeyedLock()

/** Serializes operations on one place within this process. Between processes, renames decide. */
export const inTurn = <T>(place: string, work: () => Promise<T>): Promise<T> => places.run(place, undefined, work)
