//! Parsing of a handler: its signature, and how it receives its message.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, GenericArgument, PathArguments, Token, Type, Visibility};

/// An `async fn` of the block that is not a hook.
pub(crate) struct Handler {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) message: Type,
    /// All arguments, as written.
    pub(crate) arguments: TokenStream,
    pub(crate) takes_context: bool,
    /// The return type.
    pub(crate) output: Option<Type>,
    pub(crate) body: TokenTree,
    pub(crate) is_request: bool,
    /// `true` if an error was found in the handler. It remains in the list, so that one mistake
    /// gives one error.
    pub(crate) has_errors: bool,
}

impl Handler {
    /// Returns the name of the enum variant for this handler: `AddLine` for `add_line`.
    pub(crate) fn variant_name(&self) -> Ident {
        let name = self.name.unraw().to_string();
        let mut case = String::new();
        for word in name.split('_').filter(|word| !word.is_empty()) {
            let mut letters = word.chars();
            case.extend(letters.next().into_iter().flat_map(char::to_uppercase));
            case.push_str(letters.as_str());
        }
        if case.is_empty() || case == "Self" {
            case.push('_');
        }
        Ident::new(&case, self.name.span())
    }

    /// Returns the attributes with this name.
    pub(crate) fn attributes<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Attribute> {
        self.attributes
            .iter()
            .filter(move |attribute| attribute.path().is_ident(name))
    }
}

/// The part of a function up to and including its name.
pub(crate) struct FnHead {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    /// `async`, and anything else before `fn`.
    pub(crate) qualifiers: Vec<TokenTree>,
    pub(crate) fn_token: Token![fn],
    pub(crate) name: Ident,
}

/// Parses the rest of a handler. Errors after which parsing can continue are added to `faults`.
///
/// # Errors
/// Returns an error if there is no message, or if the tokens that follow are not a function.
pub(crate) fn parse(
    mut head: FnHead,
    input: ParseStream<'_>,
    faults: &mut Vec<Error>,
) -> syn::Result<Handler> {
    let before = faults.len();
    let name = &head.name;
    let is_async = matches!(&*head.qualifiers, [TokenTree::Ident(word)] if word == "async");
    if !is_async {
        let what = format!("handlers must be async: write `async fn {name}`");
        let span = match &*head.qualifiers {
            [first, _, ..] => first.span(),
            _ => head.fn_token.span,
        };
        faults.push(Error::new(span, what));
    }
    if input.peek(Token![<]) {
        let span = input.span();
        input.parse::<syn::Generics>()?;
        let what = "handlers cannot be generic: each of their messages has one type";
        faults.push(Error::new(span, what));
    }
    let arguments;
    let parentheses = syn::parenthesized!(arguments in input);
    let written = arguments.fork().parse::<TokenStream>()?;
    let read = parse_arguments(&arguments, name, parentheses.span.join(), faults);
    // Unread arguments would be reported as another error.
    arguments.parse::<TokenStream>()?;
    let (message, takes_context) = read?;
    let output = if input.peek(Token![->]) {
        input.parse::<Token![->]>()?;
        Some(input.parse::<Type>()?)
    } else {
        None
    };
    if !input.peek(syn::token::Brace) {
        return Err(input.error("expected the body of this handler"));
    }
    let body: TokenTree = input.parse()?;
    let marked = head.attributes.len();
    head.attributes.retain(|one| !one.path().is_ident("ask"));
    let is_marked = head.attributes.len() < marked;
    Ok(Handler {
        is_request: is_marked || output.as_ref().is_some_and(returns_value),
        attributes: head.attributes,
        visibility: head.visibility,
        name: head.name,
        message,
        arguments: written,
        takes_context,
        output,
        body,
        has_errors: faults.len() > before,
    })
}

/// Parses the arguments. Returns the message type, and `true` if the context follows.
fn parse_arguments(
    arguments: ParseStream<'_>,
    name: &Ident,
    whole: Span,
    faults: &mut Vec<Error>,
) -> syn::Result<(Type, bool)> {
    let message = match (
        parse_receiver(arguments, whole),
        parse_message(arguments, name, whole),
    ) {
        (receiver, Ok(message)) => {
            faults.extend(receiver.err());
            message
        }
        // If both fail, the first error explains the second.
        (Err(error), Err(_)) | (Ok(()), Err(error)) => return Err(error),
    };
    let takes_context = !arguments.is_empty();
    if takes_context {
        parse_argument(arguments)?;
    }
    if !arguments.is_empty() {
        let what = "handlers take a message and its context, and nothing else";
        faults.push(arguments.error(what));
    }
    Ok((message, takes_context))
}

fn parse_receiver(arguments: ParseStream<'_>, whole: Span) -> syn::Result<()> {
    let what = "handlers take `&mut self`: they have exclusive access to their actor";
    let start = arguments.span();
    let borrowed = arguments.parse::<Option<Token![&]>>()?.is_some();
    if borrowed && arguments.peek(syn::Lifetime) {
        arguments.parse::<syn::Lifetime>()?;
    }
    let mutable = arguments.parse::<Option<Token![mut]>>()?.is_some();
    let Some(this) = arguments.parse::<Option<Token![self]>>()? else {
        let span = if arguments.is_empty() { whole } else { start };
        return Err(Error::new(span, what));
    };
    let fault = if borrowed && mutable {
        Ok(())
    } else if borrowed {
        Err(Error::new(start, what))
    } else {
        let hooks = format!("{what}; the hooks are `pre_start`, `signal` and `post_stop`");
        Err(Error::new(this.span, hooks))
    };
    if arguments.peek(Token![:]) {
        arguments.parse::<Token![:]>()?;
        arguments.parse::<Type>()?;
    }
    arguments.parse::<Option<Token![,]>>()?;
    fault
}

fn parse_message(arguments: ParseStream<'_>, name: &Ident, whole: Span) -> syn::Result<Type> {
    if arguments.is_empty() {
        let what = format!(
            "handlers take a message: `async fn {name}(&mut self, message: Type)`; move other \
             methods to a separate `impl` block"
        );
        return Err(Error::new(whole, what));
    }
    let message = parse_argument(arguments)?;
    match &message {
        Type::Reference(reference) => {
            let what = if last_segment_name(&reference.elem).is_some_and(|word| word == "Context") {
                format!(
                    "the message comes before the context: \
                     `async fn {name}(&mut self, message: Type, cx: &mut Context<Self>)`"
                )
            } else {
                "messages are owned by the actor: take the message by value, not by reference"
                    .to_owned()
            };
            Err(Error::new_spanned(&message, what))
        }
        other if last_segment_name(other).is_some_and(|word| word == "Signal") => {
            let what = "signals are not messages: use the hook `signal`";
            Err(Error::new_spanned(&message, what))
        }
        _ => Ok(message),
    }
}

/// Parses a pattern and its type. The pattern is left to the compiler.
fn parse_argument(arguments: ParseStream<'_>) -> syn::Result<Type> {
    while !arguments.peek(Token![:]) || arguments.peek(Token![::]) {
        if arguments.is_empty() {
            return Err(arguments.error("expected `:` and the type of this argument"));
        }
        if arguments.peek(Token![::]) {
            arguments.parse::<Token![::]>()?;
        } else {
            arguments.parse::<TokenTree>()?;
        }
    }
    arguments.parse::<Token![:]>()?;
    let argument = Type::parse(arguments)?;
    arguments.parse::<Option<Token![,]>>()?;
    Ok(argument)
}

fn last_segment_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// Returns `true` if a handler with this return type answers a request: any but `()` and
/// `Result<(), _>`.
fn returns_value(output: &Type) -> bool {
    match output {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else {
                return true;
            };
            let PathArguments::AngleBracketed(generics) = &last.arguments else {
                return true;
            };
            let Some(GenericArgument::Type(Type::Tuple(first))) = generics.args.first() else {
                return true;
            };
            last.ident != "Result" || !first.elems.is_empty()
        }
        Type::Paren(inner) => returns_value(&inner.elem),
        Type::Group(inner) => returns_value(&inner.elem),
        other => !other.to_token_stream().is_empty(),
    }
}
