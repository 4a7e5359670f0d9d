//! How text extraction treats each element of HTML.

/// The longest name that is listed, in bytes.
const LONGEST: usize = 10;

/// How an element is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// Inline: does not separate words.
    Inline,
    /// Separates words and has no content: `<br>`.
    Break,
    /// Separates words; its content is treated as the text around it.
    Block,
    /// As [`Self::Block`]; its end tag also ends all elements still open inside.
    Holder(Holder),
    /// Its content is not markup, and is left out.
    Raw,
    /// As [`Self::Raw`], but its end is found by the rules for scripts.
    Script,
    /// Its content is not markup, and is shown up to the end tag of the same name.
    Shown,
    /// Everything after it is text.
    Plaintext,
}

/// An element whose end tag ends the elements inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    // Their text is content, even inside of elements that are left out.
    Article,
    Main,
    // Their text is left out, except in an `article` or a `main` inside.
    Aside,
    Button,
    Canvas,
    Datalist,
    Footer,
    /// Left out, except inside of an `article` or a `main`.
    Header,
    Nav,
    Noscript,
    Object,
    Rp,
    Rt,
    Select,
    Svg,
    Audio,
    Video,
    // Always left out.
    Template,
    // Treated as the text around them.
    Body,
    Center,
    Details,
    Div,
    Dl,
    Fieldset,
    Figure,
    Form,
    Li,
    Ol,
    Ruby,
    Section,
    Table,
    Tbody,
    Td,
    Th,
    Tr,
    Ul,
}

impl Holder {
    /// The number of variants.
    pub(super) const COUNT: usize = Self::Ul as usize + 1;

    /// Whether its text is left out, if no other rule applies.
    pub(super) fn is_left_out(self) -> bool {
        (Self::Aside as usize..=Self::Template as usize).contains(&(self as usize))
    }
}

impl Element {
    /// Whether its tags separate words.
    pub(super) fn separates_words(self) -> bool {
        !matches!(self, Self::Inline | Self::Holder(Holder::Ruby | Holder::Rt | Holder::Rp))
    }

    /// The treatment of the element of this name, in any case. An element that is not listed separates words.
    pub(super) fn from_name(name: &[u8]) -> Self {
        let mut buffer = [0; LONGEST];
        let Some(lower) = buffer.get_mut(..name.len()) else { return Self::Block };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"a" | b"abbr" | b"acronym" | b"b" | b"bdi" | b"bdo" | b"big" | b"cite" | b"code" | b"data"
            | b"del" | b"dfn" | b"em" | b"font" | b"i" | b"ins" | b"kbd" | b"label" | b"mark" | b"nobr"
            | b"output" | b"q" | b"rb" | b"s" | b"samp" | b"small" | b"span" | b"strike" | b"strong"
            | b"sub" | b"sup" | b"time" | b"tt" | b"u" | b"var" | b"wbr" => Self::Inline,
            b"br" | b"hr" | b"img" | b"input" | b"area" | b"base" | b"col" | b"embed" | b"link" | b"meta"
            | b"source" | b"track" => Self::Break,
            b"script" => Self::Script,
            b"style" | b"title" | b"textarea" | b"iframe" | b"noembed" | b"noframes" => Self::Raw,
            b"xmp" => Self::Shown,
            b"plaintext" => Self::Plaintext,
            b"article" => Self::Holder(Holder::Article),
            b"main" => Self::Holder(Holder::Main),
            b"aside" => Self::Holder(Holder::Aside),
            b"audio" => Self::Holder(Holder::Audio),
            b"button" => Self::Holder(Holder::Button),
            b"canvas" => Self::Holder(Holder::Canvas),
            b"datalist" => Self::Holder(Holder::Datalist),
            b"footer" => Self::Holder(Holder::Footer),
            b"header" => Self::Holder(Holder::Header),
            b"nav" => Self::Holder(Holder::Nav),
            b"noscript" => Self::Holder(Holder::Noscript),
            b"object" => Self::Holder(Holder::Object),
            b"rp" => Self::Holder(Holder::Rp),
            b"rt" => Self::Holder(Holder::Rt),
            b"select" => Self::Holder(Holder::Select),
            b"svg" => Self::Holder(Holder::Svg),
            b"video" => Self::Holder(Holder::Video),
            b"template" => Self::Holder(Holder::Template),
            b"body" => Self::Holder(Holder::Body),
            b"center" => Self::Holder(Holder::Center),
            b"details" => Self::Holder(Holder::Details),
            b"div" => Self::Holder(Holder::Div),
            b"dl" => Self::Holder(Holder::Dl),
            b"fieldset" => Self::Holder(Holder::Fieldset),
            b"figure" => Self::Holder(Holder::Figure),
            b"form" => Self::Holder(Holder::Form),
            b"li" => Self::Holder(Holder::Li),
            b"ol" => Self::Holder(Holder::Ol),
            b"ruby" => Self::Holder(Holder::Ruby),
            b"section" => Self::Holder(Holder::Section),
            b"table" => Self::Holder(Holder::Table),
            b"tbody" => Self::Holder(Holder::Tbody),
            b"td" => Self::Holder(Holder::Td),
            b"th" => Self::Holder(Holder::Th),
            b"tr" => Self::Holder(Holder::Tr),
            b"ul" => Self::Holder(Holder::Ul),
            _ => Self::Block,
        }
    }
}
