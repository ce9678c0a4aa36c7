import { baseOf } from './names.ts'

/** How much of a file's start tells whether it is a pickle. */
export const PICKLE_START_BYTES = 512

/** What PyTorch and its kin load as pickles, whatever its bytes are. */
const PICKLE_NAME =
  /\.(?:pt|pth|ckpt|pkl|pickle|joblib|dill)$|^(?:(?:diffusion_)?pytorch_model|adapter_model|training_args|optimizer|scheduler|rng_state|scaler)[^/]*\.bin$/i
/** Other programs' archives, which no loader of pickles opens. */
const OTHER_ZIP = /\.(?:task|zip|npz|keras|ort|xlsx|docx|whl|jar|apk|epub)$/i

/** Whether loaders take a file of this name for a pickle; its bytes may still say that another one is. */
export const isPickleByName = (name: string): boolean => PICKLE_NAME.test(baseOf(name))

/** Whether only the bytes tell what a file of this name is. */
export const mayBePickle = (name: string): boolean => /\.(?:bin|data|model|dat)$|^[^.]+$/i.test(baseOf(name))

/**
 * Whether a file runs code when a loader of pickles opens it: the start of its bytes, or its name, says so. A name can only
 * make it one.
 */
export function isPickle(name: string, start: Uint8Array): boolean {
  if (isPickleByName(name)) return true
  // the instruction PROTO, and FRAME or any other behind it
  if (start[0] === 0x80 && start[1] !== undefined && start[1] <= 5) return true
  if (start[0] !== 0x50 || start[1] !== 0x4b || start[2] !== 3 || start[3] !== 4) return false
  const first = String.fromCharCode(...start.subarray(30, 30 + ((start[26] ?? 0) | ((start[27] ?? 0) << 8))))
  return first.endsWith('data.pkl') || !OTHER_ZIP.test(name)
}
