/** Extensions that the hub's default `.gitattributes` keeps in large-file storage. */
const LARGE_ENDINGS = new Set(
  (
    '7z arrow bin bz2 ckpt ftz gguf gz h5 joblib mlmodel model msgpack npy npz onnx ot parquet pb pickle pkl pt pth rar ' +
    'safetensors tar tflite tgz wasm xz zip zst'
  ).split(' ')
)
/** The hub's limit for files in git itself. */
const LARGE_BYTES = 10 * 1024 * 1024

/**
 * Whether the hub names this file by its SHA-256 (large-file storage) or by git's SHA-1. The artifact does not record
 * that, so the hub's defaults are assumed. Offline nobody checks; online a wrong guess costs one small download.
 */
export function isInLargeFileStorage(name: string, sizeBytes: number): boolean {
  const base = name.slice(name.lastIndexOf('/') + 1)
  return sizeBytes > LARGE_BYTES || LARGE_ENDINGS.has(base.slice(base.lastIndexOf('.') + 1))
}
