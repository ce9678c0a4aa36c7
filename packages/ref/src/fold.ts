/** Lower-cases A to Z and nothing else: `toLowerCase` would turn the Kelvin sign into a `k`. */
export const foldAscii = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
