import { ClassifyError } from '@svc/classify'
import { deserializeError, type SerializedError, serializeError } from '@svc/internal-errors'
import { type ErrorCodec, WorkerThread, type WorkerThreadOptions, workerUrl } from '@svc/internal-workers'
import type { OffloadTasks } from './task.ts'

/** Encodes the errors of tasks: those of `@svc/classify` keep their class. */
export const offloadErrors = {
  encode: (error: unknown): SerializedError => serializeError(error),
  decode: (wire: SerializedError): Error => deserializeError(wire, { ClassifyError }),
  lost: (cause) => new Error('the offload thread ended', { cause }),
  closed: () => new Error('the offload thread is closed')
} satisfies ErrorCodec

/** The heap of the thread that works for strangers. */
export const STRANGERS_HEAP_MIB = 256

/**
 * The daemon's thread for folding leaf layers, recognizing long listings, parsing headers and matching licence texts.
 * It starts when first needed; tasks run one after the other, which also limits their memory. `plan` and `recognize`
 * throw ClassifyError.
 */
export class Offload extends WorkerThread<OffloadTasks> {
  /** @param bounds of the thread's heap; default: Node's */
  constructor(bounds: Pick<WorkerThreadOptions, 'oldMib'> = {}) {
    super({ url: workerUrl('./worker', import.meta.url), name: 'svc-offload', errors: offloadErrors, ...bounds })
  }
}
