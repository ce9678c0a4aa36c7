/**
 * Niceness of the threads that fetch, decrypt and verify bytes: they yield to the event loop and to the store's thread
 * that hashes what they write (5), but not to its threads for imports and verification (10).
 */
export const TRANSFER_NICE = 8

/** Niceness of the threads that recognize files, for which an import waits before its first byte. */
export const RECOGNITION_NICE = 5
