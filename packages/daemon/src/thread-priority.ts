/**
 * Niceness of the threads that bring bytes from elsewhere, decrypt and verify them: they give way to the event loop, and to the store's
 * thread that follows what they write (5), and come before its threads for imports and verification (10).
 */
export const TRANSFER_NICE = 8

/** Niceness of the threads that recognise files, for which an import waits before its first byte. */
export const RECOGNITION_NICE = 5
