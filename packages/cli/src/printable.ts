/** Control characters that names from elsewhere could carry to a terminal become U+FFFD. */
export const printable = (text: string): string => text.replace(CONTROLS, '\ufffd')

const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g
